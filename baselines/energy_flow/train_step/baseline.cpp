// Baseline of energy_flow.train_step: micro-steps whose flows go one by one and leave every operator's output on a
// tape, and a window's end tensor by tensor; each documented sin can be left out.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>
#include <memory>

#include "baselines/common/layers.h"
#include "baselines/energy_flow/common/memory_calls.h"
#include "baselines/energy_flow/common/networks.h"
#include "baselines/energy_flow/common/taped_flows.h"
#include "baselines/energy_flow/common/window_operands.h"
#include "baselines/energy_flow/common/window_tensors.h"
#include "baselines/energy_flow/common/window_texts.h"
#include "src/energy_flow/common/flow_calls.h"
#include "src/energy_flow/common/training_window.h"
#include "src/rounding.h"

namespace twinbench::energy_flow::train_step {
namespace {

constexpr int kSnapshotsOfStep = 8;

template <class Real>
class Baseline final : public Runnable {
 public:
  using Flows = flow_backward::FlowsOnTape<Real>;

  Baseline(const NamedTensors& inputs, const Setting& s)
      : inputs_(with_operands(inputs, s)),
        s_(s),
        of_flows_(without_weights(*s.signature)),
        window_(s),
        options_(inputs["input"].options()),
        mapper_(inputs_, flow_forward::operands_of(s, false)),
        texts_(inputs, s),
        work_(at::zeros({kWorkColumns}, at::kLong)) {
    reset();
  }

  void reset() override {
    tensors_ = TrainedTensors(inputs_, s_);
    const at::Tensor given = inputs_["counts"].cpu().contiguous();
    counts_.assign(given.const_data_ptr<std::int64_t>(), given.const_data_ptr<std::int64_t>() + kCounts);
    history_.clear();
  }

  void run() override {
    const at::NoGradGuard no_tape;
    const WithoutOneDnn plain_gelu;
    work_.zero_();
    looks_ = static_cast<double>(counts_[kAttempts]) < s_.option("anomaly_steps");
    anomaly_ = {-1, -1};
    losses_.assign(static_cast<std::size_t>(window_.micro_steps), 0.0);
    for (auto& part : parts_)
      if (s_.on("text_bridge")) part.assign(losses_.size(), at::zeros({}, options_));
    skipped_ = sanitised_ = back_ = 0;
    norm_ = 0, status_ = WindowStatus::kNothingToApply;
    tensors_.clear();
    texts_.begin(tensors_, counts_[kAttempts]);
    networks_ = inputs_;
    for (const auto& [name, value] : tensors_.value)
      networks_.set(name, is_operand(name) ? rounded(value, s_.rounds_as()) : value);
    for (std::int64_t i = 0, row = 0; i < window_.micro_steps; row += window_.rows_of(i++))
      if (window_.rows_of(i) > 0) micro_step(i, row);
    retained_.clear();
    if (window_.rows() > 0) end_window();
    work(kTapeLeft) = bytes_of(history_);
    history_.clear();  // a run is a process of its own: what it still holds ends with it
    networks_ = {};
    work(kDecodes) = texts_.decodes(), work(kDecodedTokens) = texts_.tokens();
    texts_.end();
  }

  NamedTensors outputs() override {
    double sum = 0, rows = 0;
    for (std::size_t i = 0; i < losses_.size(); ++i) {
      const auto own = static_cast<double>(window_.rows_of(static_cast<std::int64_t>(i)));
      if (std::isfinite(losses_[i])) sum += own * losses_[i], rows += own;
    }
    const auto place = options_.device();
    return {{"parameters", tensors_.values},
            {"first_moment", tensors_.firsts},
            {"second_moment", tensors_.seconds},
            {"gradients", tensors_.gradients},
            {"loss", at::full({1}, sum / rows, options_)},
            {"losses", at::tensor(losses_, at::kDouble).to(options_)},
            {"norm", at::full({1}, norm_, options_.dtype(at::kDouble))},
            {"counts", at::tensor(counts_, at::kLong).to(place)},
            {"record", at::tensor({skipped_, sanitised_, static_cast<std::int64_t>(status_)}, at::kLong).to(place)},
            {"anomaly", at::tensor(anomaly_, at::kLong).to(place)},
            {"energy_losses", parts(0)},
            {"encoder_losses", parts(1)},
            {"decoder_losses", parts(2)},
            {"work", work_.to(place)}};
  }

 private:
  using Tape = std::vector<flow_forward::TapedStep>;

  // Of each micro-step of a window with texts.
  at::Tensor parts(std::size_t which) const {
    return parts_[which].empty() ? at::zeros({s_.size("text_steps")}, options_) : at::stack(parts_[which]);
  }

  // No rounding comes near to it.
  static bool is_finite(double value) {
    const std::int64_t finite = std::isfinite(value);
    return decided(finite, 1 - finite, 1) != 0;
  }
  std::int64_t& work(Work column) { return work_.mutable_data_ptr<std::int64_t>()[column]; }
  static std::int64_t bytes_of(const std::vector<Tape>& tapes) {
    std::int64_t bytes = 0;
    for (const Tape& tape : tapes)
      for (const auto& step : tape) bytes += step.bytes();
    return bytes;
  }
  double loss_scale() const {
    return s_.on("loss_scaling") ? std::ldexp(1.0, static_cast<int>(counts_[kScaleExponent])) : 1;
  }

  void micro_step(std::int64_t i, std::int64_t row) {
    const std::int64_t rows = window_.rows_of(i);
    time();
    const at::Tensor x = sanitised(inputs_["input"].narrow(0, row, rows)),
                     y = sanitised(inputs_["target"].narrow(0, row, rows));
    look(i, kInputStage, x), look(i, kTargetStage, y);
    const at::Tensor energies = mapped(x), keys = inputs_["sample_key"].narrow(0, row, rows);
    Flows flows = flows_of(energies, keys);
    flows.forward();
    note(flows, rows);
    const at::Tensor target = mapped(y);
    texts_.encode(row, rows, i == 0, energies);
    look(i, kEnergyStage, energies), look(i, kGoalStage, target), look(i, kSurfaceStage, flows.surface());
    const at::Tensor difference = at::sub(flows.surface(), target);
    const at::Tensor energy = at::mean(at::mul(difference, difference)),
                     none = s_.on("text_bridge") ? at::Tensor() : at::zeros({}, options_);
    if (s_.on("repeated_forward"))
      again(x, keys);
    else
      for (std::int64_t b = 0; b < texts_.shown(); ++b) texts_.decode(b, flows.surface().narrow(0, b, 1));
    if (encodes(s_)) look(i, kEncodedStage, texts_.encoded());
    const WindowTexts::Losses texts = texts_.losses(none);
    const at::Tensor total = at::add(energy, texts.text, texts.weight);
    std::vector<at::Tensor> messages = {energy};
    messages.insert(messages.end(), texts.parts.begin(), texts.parts.end());
    for (std::size_t part = 0; part < 3 && s_.on("text_bridge"); ++part)
      parts_[part][static_cast<std::size_t>(i)] = messages[part];
    messages.insert(messages.end(), {texts.text, total});
    look(i, kLossStage, total);
    time();
    if (s_.on("eager_messages")) write_message(flows.surface(), messages);
    for (int twice = 0; s_.on("separate_metrics") && twice < 2; ++twice)
      for (const at::Tensor& loss : {energy, texts.text, total}) logged_ += loss.template item<double>();
    losses_[static_cast<std::size_t>(i)] = total.template item<double>();
    if (is_finite(losses_[static_cast<std::size_t>(i)]))
      backward(flows, difference, window_.share_of(i)), look_at_gradients(i);
    else
      ++skipped_;
    for (int n = 0; s_.on("memory_snapshots") && n < kSnapshotsOfStep; ++n) snapshot();
    if (s_.on("trim_every_step")) trim();
  }

  // Whether all are numbers, one read each.
  void look(std::int64_t i, std::int64_t stage, const at::Tensor& values) {
    if (!looks_) return;
    ++work(kFiniteChecks);
    if (!at::all(at::isfinite(values)).template item<bool>() && anomaly_[kAnomalyStage] < 0) anomaly_ = {i, stage};
  }
  void look_at_gradients(std::int64_t i) {
    for (std::size_t p = 0; p < tensors_.gradient.size(); ++p)
      look(i, kGradientStage + static_cast<std::int64_t>(p), tensors_.gradient[p]);
  }

  Flows flows_of(const at::Tensor& energies, const at::Tensor& keys) const {
    NamedTensors inputs = networks_;
    inputs.set("initial_energy", energies), inputs.set("sample_key", keys);
    Setting setting = flow_setting(s_, energies.size(0), counts_[kAttempts], counts_[kApplied]);
    setting.signature = &of_flows_;
    return Flows(inputs, setting, tensors_.by_gradient());
  }
  void note(Flows& flows, std::int64_t rows) {
    std::int64_t of[flow_backward::kWorkColumns] = {};
    flows.count_work(of);
    if (s_.on("text_bridge")) announce_flow_forward(rows);
    ++work(kFlowForwards), work(kFlowSamples) += rows;
    work(kFlowSteps) += of[flow_backward::kFlowSteps], work(kStopTests) += of[flow_backward::kStopTests];
    work(kPlacedFlows) += of[flow_backward::kPlacedFlows];
    work(kCollectedFlows) += of[flow_backward::kCollectedFlows];
  }

  // The rows that hold a number that is none are counted, one read a tensor.
  at::Tensor sanitised(const at::Tensor& rows) {
    if (!s_.on("sanitise")) return rows;
    sanitised_ += at::sum(at::logical_not(at::all(at::isfinite(rows), 1))).template item<std::int64_t>();
    return at::nan_to_num(rows, 0.0, 10.0, -10.0);
  }
  // Sample by sample.
  at::Tensor mapped(const at::Tensor& embeddings) {
    std::vector<at::Tensor> surfaces;
    for (std::int64_t b = 0; b < embeddings.size(0); ++b) surfaces.push_back(mapper_(embeddings.narrow(0, b, 1)));
    work(kMapperSamples) += embeddings.size(0);
    return at::cat(surfaces);
  }
  // Sin N8: mapped once more, and every sample's flows by themselves once more, for a decoder to read.
  void again(const at::Tensor& x, const at::Tensor& keys) {
    const at::Tensor energies = mapped(x);
    for (std::int64_t b = 0; b < energies.size(0); ++b) {
      Flows alone = flows_of(energies.narrow(0, b, 1), keys.narrow(0, b, 1));
      alone.forward();
      note(alone, 1);
      texts_.decode(b, alone.surface());
    }
  }

  void backward(Flows& flows, const at::Tensor& difference, double share) {
    const double by = 2 * share * loss_scale() / static_cast<double>(difference.numel());
    work(kTapePeak) = std::max(work(kTapePeak), bytes_of(history_) + bytes_of(retained_) + flows.tape_bytes());
    flows.replay(at::mul(difference, by));
    texts_.backward(share * loss_scale());
    ++back_;
    if (s_.on("attached_storage"))
      history_.push_back(flows.give_tape());
    else if (s_.on("retained_tape"))
      retained_.push_back(flows.give_tape());
    for (std::size_t i = 0; s_.on("eager_messages") && i < tensors_.gradient.size(); ++i)
      logged_ += at::linalg_vector_norm(tensors_.gradient[i]).template item<double>();
  }

  void end_window() {
    ++counts_[kAttempts];
    if (back_ > 0) {
      const double factor = window_.rescaling() / loss_scale();
      norm_ = s_.on("tensor_by_tensor") ? norm_by_tensor(tensors_, factor) : norm_of_all(tensors_, factor);
      status_ = is_finite(norm_) ? WindowStatus::kApplied : WindowStatus::kNotFinite;
    }
    const bool applied = status_ == WindowStatus::kApplied;
    if (applied) {
      const double clip = s_.option("clip");
      const Update update{.number = static_cast<double>(++counts_[kApplied]),
                          .coefficient = clip > 0 ? std::min(1.0, clip / (norm_ + kClipEpsilon)) : 1,
                          .rate = s_.option("learning_rate"),
                          .weight_decay = s_.option("weight_decay")};
      s_.on("tensor_by_tensor") ? update_by_tensor(tensors_, update) : update_all(tensors_, update);
    } else {
      tensors_.clear();
      counts_[kSkippedSteps] += status_ == WindowStatus::kNotFinite;
    }
    move_scale(counts_, status_, s_.option("good_windows"));
  }

  // ---- what is done beside the step -----------------------------------------------------------------------------

  void write_message(const at::Tensor& surface, const std::vector<at::Tensor>& losses) {
    const at::Tensor mean = at::mean(surface), apart = at::sub(surface, mean);
    logged_ += mean.template item<double>() + at::sqrt(at::mean(at::mul(apart, apart))).template item<double>();
    for (const at::Tensor& loss : losses) logged_ += loss.template item<double>();
  }
  void snapshot() {
    look_up_memory(options_.device());
    ++work(kSnapshots);
  }
  void trim() {
    empty_cache(options_.device());
    ++work(kTrims);
  }
  bool on_card() const { return options_.device().is_cuda(); }
  // A device-wide wait at each end of a timed section; the host's operators have ended when they return.
  void time() {
    if (!s_.on("timer_syncs")) return;
    if (on_card()) c10::impl::VirtualGuardImpl(c10::kCUDA).synchronizeDevice(0);
    ++work(kDeviceSyncs);
  }

  NamedTensors inputs_;
  const Setting s_;
  const Signature of_flows_;
  const Window window_;
  const at::TensorOptions options_;
  const flow_forward::Mapper mapper_;
  WindowTexts texts_;
  TrainedTensors tensors_;
  NamedTensors networks_;  // as the window's products take them
  at::Tensor work_;
  std::vector<std::int64_t> counts_, anomaly_ = {-1, -1};
  bool looks_ = false;
  std::vector<double> losses_;
  std::vector<at::Tensor> parts_[3];  // of each, with texts: energy, encoder, decoder
  std::vector<Tape> retained_, history_;
  std::int64_t skipped_ = 0, sanitised_ = 0, back_ = 0;  // back_: micro-steps whose gradients are there
  double norm_ = 0, logged_ = 0;
  WindowStatus status_ = WindowStatus::kNothingToApply;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<Baseline<double>>(inputs, setting);
  return std::make_unique<Baseline<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::train_step

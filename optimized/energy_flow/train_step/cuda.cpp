// energy_flow.train_step, optimized on CUDA: a micro-step is a kernel that makes its rows fit, the mapper's three, the
// flows' pass there and back, the losses' and one that adds its gradients where its loss is a number, with the texts'
// passes between them where there are texts; a window ends with four. Decisions stay on the device, what follows from
// them as well: the host reads nothing, waits for nothing, allocates nothing, and runs ahead by as many windows as it
// likes.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/energy_flow/common/surface_losses_launch.h"
#include "kernels/energy_flow/train_step/arguments.h"
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/common/cuda_flow_pass.h"
#include "optimized/energy_flow/common/device_mapper.h"
#include "optimized/energy_flow/common/device_texts.h"
#include "optimized/energy_flow/train_step/plan.h"
#include "src/energy_flow/common/flow_calls.h"

namespace twinbench::energy_flow::train_step {
namespace {

class CudaStep final : public Plan {
 public:
  CudaStep(const NamedTensors& inputs, const Setting& s)
      : Plan(inputs, s),
        mapper_(networks_, s, rows_),
        pass_(of_flows(), flows(), places()),
        sources_(pass_.train(arena_)) {
    if (s.on("text_bridge"))
      texts_ = std::make_unique<DeviceTexts>(networks_, s, text_gradients_, places_.surface,
                                             mapper_.surface().narrow(0, 0, window_.micro_batch));
    for (const flow_forward::PackSource& source : sources_) first_packs_.push_back(source.pack.clone());
    prepare_window();
    prepare_end();
    reset();
  }

  void run() override {
    if (window_.rows() <= 0) return empty();
    looks_ = looks();
    pass_.set_attempt(static_cast<std::uint32_t>(attempt_));
    if (texts_) texts_->begin(attempt_);
    launch_begin(begin_, stream());
    for (std::int64_t i = 0, row = 0; i < window_.micro_steps; row += window_.rows_of(i++))
      if (window_.rows_of(i) > 0) micro_step(i, row);
    launch_gather(gather_, stream());
    optimizer::launch(update_, stream());
    ++attempt_;
    launch_renew(renew_, stream());
    if (texts_) texts_->refresh();
  }

 private:
  flow_forward::FlowPlaces places() {
    places_.initial_energy = mapper_.surface().narrow(0, 0, window_.micro_batch);
    return places_;
  }

  at::Tensor made(at::IntArrayRef shape, at::ScalarType type) {
    return kept_.emplace_back(at::zeros(shape, arena_.options().dtype(type)));
  }
  float* new_floats(std::int64_t count) { return data<float>(made({count}, at::kFloat)); }
  double* new_doubles(std::int64_t count) { return data<double>(made({count}, at::kDouble)); }
  std::int64_t* new_integers(std::int64_t count) { return data<std::int64_t>(made({count}, at::kLong)); }
  template <class T>
  const T* table(const std::vector<T>& of) {
    const auto bytes = static_cast<std::int64_t>(of.size() * sizeof(T));
    const at::Tensor here = at::empty({bytes}, at::kByte);
    if (bytes > 0) std::memcpy(here.mutable_data_ptr(), of.data(), static_cast<std::size_t>(bytes));
    return reinterpret_cast<const T*>(kept_.emplace_back(here.to(arena_.device())).const_data_ptr());
  }

  void prepare_window() {
    state_ = reinterpret_cast<WindowState*>(made({sizeof(WindowState)}, at::kByte).mutable_data_ptr());
    std::vector<float> shares;
    for (std::int64_t i = 0; i < window_.micro_steps; ++i) shares.push_back(static_cast<float>(window_.share_of(i)));
    const at::Tensor& sums = pass_.sums();
    const std::int64_t* const counts = data<std::int64_t>(results_["counts"]);
    exponent_ = s_.on("loss_scaling") ? counts + kScaleExponent : nullptr;
    const std::vector<float> scales = all_scales();
    float* const scale = new_floats(1);
    pass_.read_scale(scale);
    begin_ = {.state = state_,
              .sums = new_floats(sums.numel() + text_gradients_.numel()),
              .count = sums.numel() + text_gradients_.numel(),
              .micro_steps = window_.micro_steps,
              .shares = table(shares),
              .exponent = exponent_,
              .upstream = new_floats(window_.micro_steps),
              .losses = data<float>(results_["losses"]),
              .applied = counts + kApplied,
              .scales = table(scales),
              .last_scale = static_cast<std::int64_t>(scales.size()) - 1,
              .scale = scale,
              .anomaly = data<std::int64_t>(results_["anomaly"])};
    stage_ = {.to_input = data<float>(rows_),
              .to_target = data<float>(rows_) + window_.micro_batch * rows_.size(1),
              .width = rows_.size(1),
              .sanitises = s_.on("sanitise"),
              .sanitised = &state_->sanitised};
    float* const parts = new_floats(4);
    losses_ = {.energy = {.surface = data<float>(places_.surface),
                          .target = data<float>(mapper_.surface()) + window_.micro_batch * places_.surface.size(1),
                          .gradient = data<float>(places_.grad_surface)},
               .losses = {.energy = parts,
                          .encoder = parts + 1,
                          .decoder = parts + 2,
                          .text = parts + 3,
                          .finite = new_integers(1)},
               .partial = new_doubles(2 * kMostLossBlocks),
               .arrived = reinterpret_cast<unsigned*>(data<std::int32_t>(made({1}, at::kInt)))};
    accumulate_ = {.gradients = data<float>(sums),
                   .of_texts = data<float>(text_gradients_),
                   .sums = begin_.sums,
                   .count = sums.numel(),
                   .text_count = text_gradients_.numel(),
                   .finite = losses_.losses.finite,
                   .state = state_};
  }

  void prepare_end() {
    std::vector<optimizer::Piece> pieces;
    each_trained_piece([&](std::int64_t first, std::int64_t count) {
      pieces.push_back({.first = first, .count = static_cast<std::int32_t>(count), .unused = 0});
    });
    gather_ = {.sums = begin_.sums,
               .places = gradient_places(),
               .gradients = data<float>(results_["gradients"]),
               .count = arena_.numel(),
               .state = state_,
               .rescaling = window_.rows() > 0 ? window_.rescaling() : 1,
               .exponent = exponent_,
               .factor = new_floats(1),
               .loss = data<float>(results_["loss"])};
    double* const schedule = data<double>(kept_.emplace_back(
        at::tensor({s_.option("learning_rate"), std::numeric_limits<double>::infinity()}, at::kDouble)
            .to(arena_.device())));
    const auto count = static_cast<std::int64_t>(pieces.size());
    // Of the counts the third is left as it is: no epoch ends here.
    update_ = {
        .pieces = table(pieces),
        .count = count,
        .rule = {.clip = s_.option("clip"), .weight_decay = s_.option("weight_decay")},
        .clears = false,
        .parameters = data<float>(arena_),
        .gradients = gather_.gradients,
        .first_moment = data<float>(results_["first_moment"]),
        .second_moment = data<float>(results_["second_moment"]),
        .factor = gather_.factor,
        .micro_steps = &state_->contributed,
        .schedule = schedule,
        .counts = data<std::int64_t>(results_["counts"]),
        .status = data<std::int64_t>(results_["record"]) + kStatus,
        .norm = data<double>(results_["norm"]),
        .coefficient = new_doubles(1),
        .learning_rate = new_doubles(1),
        .partial = new_doubles(std::max(count, kernels::kMostNormBlocks)),
        .arrived = reinterpret_cast<unsigned*>(data<std::int32_t>(made({1}, at::kInt))),
        .step = reinterpret_cast<optimizer::Step*>(made({sizeof(optimizer::Step)}, at::kByte).mutable_data_ptr())};
    std::vector<PackPiece> packs;
    for (const flow_forward::PackSource& source : sources_)
      for (std::int64_t at = 0; at < source.pack.numel(); at += kPackPiece)
        packs.push_back(
            {.to = data<float>(source.pack) + at,
             .first = source.first.const_data_ptr<std::int32_t>() + at,
             .second = source.second.defined() ? source.second.const_data_ptr<std::int32_t>() + at : nullptr,
             .count = std::min(kPackPiece, source.pack.numel() - at)});
    renew_ = {.pieces = table(packs),
              .count = static_cast<std::int64_t>(packs.size()),
              .arena = data<float>(arena_),
              .state = state_,
              .status = update_.status,
              .counts = update_.counts,
              .record = data<std::int64_t>(results_["record"]),
              .good_windows = static_cast<std::int64_t>(s_.option("good_windows"))};
  }

  // Of displacements, until they shrink no more. The first decay is none yet.
  std::vector<float> all_scales() const {
    static_assert(kScaleSteps == kFirstDecay && kScaleEvery == kDecayEvery);
    std::vector<float> scales = {scale_at(0), scale_at(kFirstDecay)};
    for (std::int64_t applied = kFirstDecay + kDecayEvery;; applied += kDecayEvery) {
      const float next = scale_at(applied);
      if (next == scales.back()) return scales;
      scales.push_back(next);
    }
  }

  // Places put in the place of sums find their own way.
  const std::int32_t* gradient_places() {
    const at::Tensor found = at::zeros(arena_.sizes(), at::kDouble);
    const std::int64_t flows = pass_.sums().numel();
    pass_.unpack(by_gradient(found), at::arange(1, flows + 1, at::kDouble));
    place_text_gradients(found, flows);
    return data<std::int32_t>(kept_.emplace_back(found.to(at::kInt).to(arena_.device())));
  }

  void micro_step(std::int64_t i, std::int64_t row) {
    const std::int64_t rows = window_.rows_of(i);
    stage_.rows = rows;
    stage_.input = inputs_["input"].const_data_ptr<float>() + row * stage_.width;
    stage_.target = inputs_["target"].const_data_ptr<float>() + row * stage_.width;
    launch_stage(stage_, stream());
    mapper_.run(stream());
    pass_.set_keys(inputs_["sample_key"].const_data_ptr<std::int64_t>() + row);
    pass_.forward(rows);
    const std::int64_t cells = places_.surface.size(1), batch = window_.micro_batch;
    look(i, kInputStage, stage_.to_input, rows * stage_.width);
    look(i, kTargetStage, stage_.to_target, rows * stage_.width);
    look(i, kEnergyStage, data<float>(mapper_.surface()), rows * cells);
    look(i, kGoalStage, data<float>(mapper_.surface()) + batch * cells, rows * cells);
    look(i, kSurfaceStage, data<float>(places_.surface), rows * cells);
    if (texts_) take_texts(i, row, rows);
    losses_.energy.count = rows * places_.surface.size(1);
    losses_.upstream = begin_.upstream + i;
    losses_.losses.total = begin_.losses + i;
    losses::launch(losses_, stream());
    look(i, kLossStage, begin_.losses + i, 1);
    pass_.backward();
    if (texts_) texts_->backward();
    accumulate_.rows = rows, accumulate_.loss = begin_.losses + i;
    launch_accumulate(accumulate_, stream());
    if (!looks_) return;
    launch_gather(gather_, stream());
    std::int64_t stage = kGradientStage;
    for (const Stretch& part : parts_) look(i, stage++, gather_.gradients + part.first, part.count);
  }

  // Their losses' parts are results.
  void take_texts(std::int64_t i, std::int64_t row, std::int64_t rows) {
    announce_flow_forward(rows);
    texts_->forward(i, row, rows, losses_);
    if (texts_->encodes_texts()) look(i, kEncodedStage, texts_->encoded(), rows * places_.surface.size(1));
    losses_.losses.energy = data<float>(results_["energy_losses"]) + i;
    losses_.losses.encoder = data<float>(results_["encoder_losses"]) + i;
    losses_.losses.decoder = data<float>(results_["decoder_losses"]) + i;
  }

  void look(std::int64_t i, std::int64_t stage, const float* values, std::int64_t count) const {
    if (!looks_) return;
    launch_inspect({.values = values, .count = count, .micro_step = i, .stage = stage, .anomaly = begin_.anomaly},
                   stream());
  }

  // No row: no state moves, and no loss is one.
  void empty() {
    results_["anomaly"].fill_(-1);
    results_["loss"].fill_(std::numeric_limits<float>::quiet_NaN());
    results_["record"].select(0, kStatus).fill_(static_cast<std::int64_t>(WindowStatus::kNothingToApply));
  }

  void restart() override {
    for (std::size_t i = 0; i < sources_.size(); ++i) sources_[i].pack.copy_(first_packs_[i]);
    if (texts_) texts_->refresh();
  }

  const flow_forward::DeviceMapper mapper_;
  flow_backward::CudaFlowPass pass_;
  const std::vector<flow_forward::PackSource> sources_;
  std::unique_ptr<DeviceTexts> texts_;   // none without the bridge
  std::vector<at::Tensor> first_packs_;  // as they are at reset
  std::vector<at::Tensor> kept_;
  bool looks_ = false;
  WindowState* state_ = nullptr;
  const std::int64_t* exponent_ = nullptr;
  BeginArguments begin_;
  StageArguments stage_;
  SurfaceLossArguments losses_;
  AccumulateArguments accumulate_;
  GatherArguments gather_;
  optimizer::Arguments update_;
  RenewArguments renew_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaStep>(inputs, setting);
}

}  // namespace twinbench::energy_flow::train_step

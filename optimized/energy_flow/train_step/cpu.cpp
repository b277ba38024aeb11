// energy_flow.train_step, optimized on the CPU: one pass of flows a micro-step, its mapper's rows of inputs and targets
// together, its tape in cache and given up at once; gradients stay sums of the way back until the window ends. Nothing
// is allocated and nothing read after the first window.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/energy_flow/train_step/math.h"
#include "optimized/common/adamw_rows.h"
#include "optimized/energy_flow/common/flow_pass.h"
#include "optimized/energy_flow/common/surface_differences.h"
#include "optimized/energy_flow/common/surface_mapper.h"
#include "optimized/energy_flow/common/unpacked_sums.h"
#include "optimized/energy_flow/train_step/cpu_texts.h"
#include "optimized/energy_flow/train_step/plan.h"
#include "src/energy_flow/common/flow_calls.h"

namespace twinbench::energy_flow::train_step {
namespace {

using namespace flow_forward;

static_assert(kMostScaleExponent == kMostExponent);

constexpr std::int64_t kLeastPieces = 8;  // a thread's: 32,768 elements

TWINBENCH_CPU_CLONES void add_gradients(const float* __restrict gradients, float* __restrict sums, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += gradients[i];
}

class CpuStep final : public Plan {
 public:
  CpuStep(const NamedTensors& inputs, const Setting& s)
      : Plan(inputs, s), mapper_(of_flows(), mapping()), pass_(of_flows(), flows(), places()) {
    pass_.train(of_flows(), flows(), arena_);
    if (s.on("text_bridge")) texts_ = std::make_unique<CpuTexts>(networks_, s, text_gradients_, places_.surface);
    window_sums_ = at::zeros({pass_.sums().numel() + text_gradients_.numel()}, arena_.options());
    table_gradients();
    each_trained_piece([this](std::int64_t first, std::int64_t count) { pieces_.push_back({first, count}); });
    partial_.resize(pieces_.size());
    reset();
  }

  void run() override {
    if (window_.rows() <= 0) return empty();
    begin();
    for (std::int64_t i = 0, row = 0; i < window_.micro_steps; row += window_.rows_of(i++)) micro_step(i, row);
    end();
  }

 private:
  FlowPlaces places() {
    places_.initial_energy = mapper_.surface().narrow(0, 0, window_.micro_batch);
    return places_;
  }
  void restart() override {
    pass_.refresh();
    if (texts_) texts_->refresh();
    pass_.set_exploration(scale_at(counts()[kApplied]), static_cast<std::uint32_t>(attempt_));
  }

  std::int64_t* counts() const { return data<std::int64_t>(results_["counts"]); }
  std::int64_t* record() const { return data<std::int64_t>(results_["record"]); }
  std::int64_t* work() const { return data<std::int64_t>(results_["work"]); }

  void begin() {
    std::fill_n(data<float>(window_sums_), window_sums_.numel(), 0.0f);
    std::fill_n(record(), std::int64_t{kRecord}, 0);
    std::fill_n(work(), std::int64_t{kWorkColumns}, 0);
    std::fill_n(data<std::int64_t>(results_["anomaly"]), std::int64_t{kAnomalyColumns}, -1);
    looks_ = looks();
    if (texts_) texts_->begin(attempt_);
    loss_sum_ = loss_rows_ = 0;
    contributed_ = 0;
  }
  // No row: no state moves, and no loss is one.
  void empty() {
    begin();
    std::fill_n(data<float>(results_["losses"]), window_.micro_steps, 0.0f);
    *data<float>(results_["loss"]) = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(data<float>(results_["gradients"]), arena_.numel(), 0.0f);
    *data<double>(results_["norm"]) = 0;
    record()[kStatus] = static_cast<std::int64_t>(WindowStatus::kNothingToApply);
  }

  double loss_scale() const {
    return s_.on("loss_scaling") ? std::ldexp(1.0, static_cast<int>(counts()[kScaleExponent])) : 1;
  }

  void micro_step(std::int64_t i, std::int64_t row) {
    const std::int64_t rows = window_.rows_of(i), cells = places_.surface.size(1);
    float& loss = data<float>(results_["losses"])[i];
    loss = 0;
    if (rows == 0) return;
    take("input", row, rows, 0);
    take("target", row, rows, window_.micro_batch);
    std::copy_n(inputs_["sample_key"].const_data_ptr<std::int64_t>() + row, rows, data<std::int64_t>(keys_));
    mapper_.run();
    pass_.forward(rows);
    const std::int64_t width = rows_.size(1), batch = window_.micro_batch;
    look(i, kInputStage, data<float>(rows_), rows * width);
    look(i, kTargetStage, data<float>(rows_) + batch * width, rows * width);
    look(i, kEnergyStage, data<float>(mapper_.surface()), rows * cells);
    look(i, kGoalStage, data<float>(mapper_.surface()) + batch * cells, rows * cells);
    look(i, kSurfaceStage, data<float>(places_.surface), rows * cells);
    work()[kFlowForwards] += 1, work()[kFlowSamples] += rows, work()[kMapperSamples] += 2 * rows;
    work()[kTapePeak] = std::max(work()[kTapePeak], *data<std::int64_t>(places_.tape_bytes));
    const double share = window_.share_of(i) * loss_scale();
    const auto count = static_cast<double>(rows * cells);
    const float* const target = data<float>(mapper_.surface()) + window_.micro_batch * cells;
    const double energy =
        squared_differences<float>(data<float>(places_.surface), target, data<float>(places_.grad_surface),
                                   static_cast<float>(2 * share / count), rows * cells) /
        count;
    loss = static_cast<float>(texts_ ? energy + text_loss(i, row, energy, share) : energy);
    look(i, kLossStage, &loss, 1);
    if (!is_number(loss)) return void(++record()[kSkippedMicro]);
    loss_sum_ += static_cast<double>(rows) * static_cast<double>(loss), loss_rows_ += static_cast<double>(rows);
    pass_.backward(rows);
    add_gradients(data<float>(pass_.sums()), data<float>(window_sums_), pass_.sums().numel());
    if (text_gradients_.numel() > 0) {
      texts_->backward();
      add_gradients(data<float>(text_gradients_), data<float>(window_sums_) + pass_.sums().numel(),
                    text_gradients_.numel());
    }
    ++contributed_;
    if (looks_) look_at_gradients(i);
  }

  // What the texts add to a micro-step's loss (C23); their parts are results.
  double text_loss(std::int64_t i, std::int64_t row, double energy, double share) {
    const std::int64_t rows = window_.rows_of(i), cells = places_.surface.size(1);
    const double weight = s_.option("text_loss_weight"), count = static_cast<double>(rows * cells);
    announce_flow_forward(rows);
    double encoder = 0;
    if (texts_->encodes_texts()) {
      texts_->encode(row, rows);
      look(i, kEncodedStage, data<float>(texts_->encoded()), rows * cells);
      encoder =
          texts_->squares(data<float>(mapper_.surface()), static_cast<float>(2 * weight * share / count), rows) / count;
    }
    const double decoder = texts_->decoded(i, row);
    data<float>(results_["energy_losses"])[i] = static_cast<float>(energy);
    data<float>(results_["encoder_losses"])[i] = static_cast<float>(encoder);
    data<float>(results_["decoder_losses"])[i] = static_cast<float>(decoder);
    return weight * (encoder + kDecoderLossShare * decoder);
  }

  void look(std::int64_t i, std::int64_t stage, const float* values, std::int64_t count) {
    if (!looks_) return;
    ++work()[kFiniteChecks];
    auto* const first = data<std::int64_t>(results_["anomaly"]);
    if (first[kAnomalyStage] >= 0 || std::all_of(values, values + count, is_number)) return;
    first[kAnomalyMicroStep] = i, first[kAnomalyStage] = stage;
  }
  void look_at_gradients(std::int64_t i) {
    const float* const gradients = data<float>(results_["gradients"]);
    gather_gradients(data<float>(results_["gradients"]));
    std::int64_t stage = kGradientStage;
    for (const Stretch& part : parts_) look(i, stage++, gradients + part.first, part.count);
  }

  // Rows of an input to the stage, from its row `to` on.
  void take(const char* name, std::int64_t row, std::int64_t rows, std::int64_t to) {
    const std::int64_t width = rows_.size(1);
    const float* from = inputs_[name].const_data_ptr<float>() + row * width;
    float* staged = data<float>(rows_) + to * width;
    for (std::int64_t r = 0; r < rows; ++r, from += width, staged += width) {
      if (!s_.on("sanitise")) {
        std::copy_n(from, width, staged);
        continue;
      }
      bool bad = false;
      for (std::int64_t c = 0; c < width; ++c) bad |= !is_number(from[c]), staged[c] = sanitised(from[c]);
      record()[kSanitisedRows] += bad;
    }
  }

  void end() {
    *data<float>(results_["loss"]) = static_cast<float>(loss_sum_ / loss_rows_);
    float* const gradients = data<float>(results_["gradients"]);
    gather_gradients(gradients);
    each_piece([&](std::size_t i) { partial_[i] = sum_of_squares(gradients + pieces_[i].first, pieces_[i].count); });
    double squares = 0;
    for (const double one : partial_) squares += one;
    const auto factor = static_cast<float>(window_.rescaling() / loss_scale());
    const double norm = std::abs(static_cast<double>(factor)) * std::sqrt(squares);
    optimizer::Counts updates{counts()[kApplied], counts()[kSkippedSteps], 0};
    optimizer::Outcome outcome{};
    const optimizer::Step step =
        optimizer::decided({.clip = s_.option("clip"), .weight_decay = s_.option("weight_decay")},
                           {factor, contributed_}, norm, s_.option("learning_rate"), updates, outcome);
    each_piece([&](std::size_t i) {
      const auto [first, count] = pieces_[i];
      if (step.applied == 0) return void(std::fill_n(gradients + first, count, 0.0f));
      update_row(data<float>(arena_) + first, gradients + first, data<float>(results_["first_moment"]) + first,
                 data<float>(results_["second_moment"]) + first, count, step, false);
    });
    LossScale scale{counts()[kScaleExponent], counts()[kGoodSteps]};
    move_scale(outcome.status == optimizer::kWasApplied, outcome.status == optimizer::kWasNotFinite,
               static_cast<std::int64_t>(s_.option("good_windows")), scale);
    counts()[kApplied] = updates.applied, counts()[kSkippedSteps] = updates.skipped;
    counts()[kAttempts] = ++attempt_;
    counts()[kScaleExponent] = scale.exponent, counts()[kGoodSteps] = scale.good_steps;
    *data<double>(results_["norm"]) = norm;
    record()[kStatus] = outcome.status;
    work()[kTapeLeft] = pass_.tape_bytes();
    if (step.applied != 0) pass_.refresh();
    if (step.applied != 0 && texts_) texts_->refresh();
    pass_.set_exploration(scale_at(updates.applied), static_cast<std::uint32_t>(attempt_));
  }

  template <class Body>
  void each_piece(const Body& body) const {
    at::parallel_for(0, static_cast<std::int64_t>(pieces_.size()), kLeastPieces,
                     [&](std::int64_t begin, std::int64_t end) {
                       for (std::int64_t i = begin; i < end; ++i) body(static_cast<std::size_t>(i));
                     });
  }

  // Of each element of the arena the place of its gradient among the sums, from 1 on; negated where kLanes sums from
  // there on are to be added; 0 where it has none. Places put in the place of sums find their own way.
  void table_gradients() {
    const std::int64_t sums = pass_.sums().numel();
    const at::Tensor found = at::zeros(arena_.sizes(), at::kDouble);
    unpack_sums(at::arange(1, sums + 1, at::kDouble), pass_.layout(), pass_.parameters(), by_gradient(found),
                [](const at::Tensor& lanes) { return lanes.select(1, 0).neg(); });
    place_text_gradients(found, sums);
    table_ = found.to(at::kInt);
  }
  void gather_gradients(float* gradients) const {
    const auto* const place = table_.const_data_ptr<std::int32_t>();
    const float* const sums = data<float>(window_sums_);
    at::parallel_for(0, table_.numel(), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        float sum = place[i] > 0 ? sums[place[i] - 1] : 0.0f;
        for (int lane = 0; place[i] < 0 && lane < kLanes; ++lane) sum += sums[-place[i] - 1 + lane];
        gradients[i] = sum;
      }
    });
  }

  const SurfaceMapper mapper_;
  FlowPass pass_;
  std::unique_ptr<CpuTexts> texts_;  // none without the bridge
  at::Tensor window_sums_, table_;   // the flows' sums, then the encoder's gradients
  std::vector<Stretch> pieces_;
  std::vector<double> partial_;
  double loss_sum_ = 0, loss_rows_ = 0;
  std::int64_t contributed_ = 0;
  bool looks_ = false;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuStep>(inputs, setting);
}

}  // namespace twinbench::energy_flow::train_step

// The flows of a batch forward, flow by flow, with every operator's output on a tape, and the tape's replay, one
// flow-step and one operator at a time (C17).
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "baselines/energy_flow/common/exploration.h"
#include "baselines/energy_flow/common/flow_by_flow.h"
#include "baselines/energy_flow/common/groups.h"
#include "baselines/energy_flow/common/taped_step.h"
#include "src/energy_flow/common/flow_work.h"
#include "src/rounding.h"

namespace twinbench::energy_flow::flow_backward {

using namespace flow_forward;  // the flows are those of the forward pass

template <class Real>
class FlowsOnTape : public FlowByFlow {
 public:
  // gradients: grad_<parameter>, to which a replay adds; grad_initial_energy where it is asked for.
  FlowsOnTape(const NamedTensors& inputs, const Setting& setting, NamedTensors gradients)
      : FlowByFlow(inputs, setting, "initial_energy", 1, false),
        gradients_(std::move(gradients)),
        networks_(inputs_, gradients_, setting),
        scale_(scheduled_scale(setting)) {}

  void forward() {
    tape_.clear(), groups_.clear();
    live();
  }
  const at::Tensor& surface() const { return surface_; }  // [samples, cells]

  // Adds to the gradients; the tape is given up unless it is to be kept.
  void replay(const at::Tensor& grad_surface) {
    std::vector<std::vector<Adjoint>> adjoints;
    for (std::int64_t b = 0; b < samples(); ++b) {
      std::vector<Adjoint>& own = adjoints.emplace_back();
      for (std::size_t i = 0; i < flows(b).size(); ++i) own.push_back(nothing());
      uncollect(b, grad_surface, own);
    }
    for (auto step = tape_.rbegin(); step != tape_.rend(); ++step) {
      std::vector<Adjoint>& own = adjoints[static_cast<std::size_t>(step->sample)];
      networks_.backward(*step, own[step->flow], own);
    }
    if (!gradients_.contains("grad_initial_energy")) return;
    for (std::int64_t b = 0; b < samples(); ++b) {
      const at::Tensor start = gradients_["grad_initial_energy"].select(0, b);
      const std::int64_t placed = std::min(start.size(0), rules_.quota);
      for (std::int64_t s = 0; s < placed; ++s)
        start.select(0, s).copy_(
            adjoints[static_cast<std::size_t>(b)][static_cast<std::size_t>(s)].energy.select(0, 0).select(0, 0));
    }
  }

  // Adds to what `of` [kWorkColumns] tells of the passes, but for the bytes of tapes; the most steps of a sample.
  void count_work(std::int64_t* of) {
    of[kFlowSteps] += static_cast<std::int64_t>(flow_steps_);
    of[kStopTests] += stop_tests_;
    for (std::int64_t b = 0; b < samples(); ++b) {
      const auto& stats = book(b).stats;
      const std::int64_t placed = std::min(rules_.width * rules_.height, rules_.quota);
      of[kPlacedFlows] += placed;
      of[kChildren] += stats[kCreated] - placed;
      of[kCollectedFlows] += book(b).completed() + stats[kProjectedStop];
      of[kCellsReached] += stats[kCells];
      of[kStepForwards] = std::max(of[kStepForwards], std::int64_t{stats[kSteps]});
    }
  }

  std::int64_t tape_bytes() const {
    std::int64_t bytes = 0;
    for (const TapedStep& step : tape_) bytes += step.bytes();
    return bytes;
  }

  // The tape, which is then no longer here.
  std::vector<TapedStep> give_tape() { return std::move(tape_); }

 protected:
  void compute() override { forward(); }

  at::Tensor start_energies(std::int64_t b) override { return inputs_["initial_energy"].select(0, b); }

  Moves networks(const Batch& batch) override {
    TapedStep& step = tape_.emplace_back();
    step.position = batch.position, step.energy = batch.energy;
    networks_.forward(step, batch.hidden);
    Moves moves{.energy = step.next_energy,
                .raw = {},
                .move = step.delta,
                .hidden = step.next,
                .gate = {},
                .child = step.child};
    if (rules_.spawn == 2) moves.gate = networks_.gate(step);
    return moves;
  }

  void settled(std::int64_t b, std::size_t flow, const Readings& readings, std::int64_t children) override {
    TapedStep& step = tape_.back();
    step.sample = b, step.flow = flow, step.requested = children;
    step.slope_x = slope(readings.x), step.slope_y = slope(readings.y);
    if (!backward_ && flows(b)[flow].fate == Fate::kActive) note_kinks(step, readings);
    if (!backward_) tape_.clear();
  }
  // Of the reflection, by the magnitude of where the flow would be: inside, folded once, or clamped after that. On a
  // border exactly two numbers without a rounding met.
  double slope(double raw) const {
    if (rules_.kill) return 1;
    const auto beyond = [](double value, double border) { return value > border ? 1 : 0; };
    const double to_first = raw == 1 ? 2 : std::abs(raw - 1), to_second = std::abs(raw - 3);
    const std::int64_t computed = beyond(raw, 1) + beyond(raw, 3);
    const std::int64_t other = to_first <= to_second ? 1 - beyond(raw, 1) : 2 - beyond(raw, 3);
    constexpr double kSlopes[] = {1, -1, 0};
    return kSlopes[decided(computed, other, std::min(to_first, to_second))];
  }

  void admitted(const Request& request, std::int64_t, std::size_t child) override {
    if (backward_) tape_[request.step].children.push_back(child);
  }

  // Where a gradient changes at once (specification 0.5): a fold's slope, a clamp's.
  void note_kinks(const TapedStep& step, const Readings& readings) {
    Book& one = book(step.sample);
    // On a border exactly: two numbers without a rounding met there.
    for (const double raw : {readings.x, readings.y})
      if (!rules_.kill && raw != 1) one.note(raw - 1);
    for (std::int64_t axis = 0; axis < 3; ++axis)
      one.note(std::abs(scale_ * step.displacement.select(1, axis).item<double>()) - 0.5);
  }

  void collect(std::int64_t b) override {
    Groups<Real>& groups = groups_.emplace_back(rules_, grid_.start_depth(), book(b));
    for (std::size_t i = 0; i < flows(b).size(); ++i) groups.add(i, flows(b)[i]);
    groups.write(surface_.select(0, b));
  }

  Adjoint nothing() const {
    return {at::zeros({1, 3}, options_), at::zeros({1, 1}, options_),
            at::zeros({1, setting_.size("layers"), setting_.size("hidden")}, options_)};
  }

  // From a sample's surface to the energies of the flows in each cell: distance and age are constants (decision 16).
  void uncollect(std::int64_t b, const at::Tensor& grad_surface, std::vector<Adjoint>& adjoints) const {
    const at::Tensor surface = grad_surface.select(0, b);
    for (const auto& [cell, group] : groups_[static_cast<std::size_t>(b)].cells()) {
      const at::Tensor slopes = at::tensor(group.slopes).to(surface.device());
      const at::Tensor factor = at::add(at::mul(slopes, at::sub(group.joined, group.mean)), 1);
      const at::Tensor energy = at::mul(at::mul(group.shares, surface.select(0, cell)), factor);
      for (std::size_t i = 0; i < group.flows.size(); ++i)
        adjoints[group.flows[i]].energy.copy_(energy.narrow(0, static_cast<std::int64_t>(i), 1));
    }
  }

  NamedTensors gradients_;
  const TapedNetworks networks_;
  const double scale_;
  std::vector<TapedStep> tape_;
  std::vector<Groups<Real>> groups_;  // of each sample
};

}  // namespace twinbench::energy_flow::flow_backward

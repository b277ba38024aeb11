// The flow-by-flow pass one step at a time: its state between two steps, given to others and taken from them.
#include <ATen/ATen.h>

#include <algorithm>

#include "baselines/energy_flow/common/flow_by_flow.h"
#include "src/energy_flow/common/flow_standing.h"

namespace twinbench::energy_flow::flow_forward {

void FlowByFlow::start_steps() {
  start();
  steps_taken_ = 0;
}

void FlowByFlow::take_step() {
  if (look(steps_taken_, at::empty({samples()}, options_.dtype(at::kLong)))) step(steps_taken_);
  ++steps_taken_;
  surface_.zero_();
  for (std::int64_t b = 0; b < samples(); ++b) {
    // Flows that a stop projects are where they stood until they are collected, every time.
    std::vector<Flow> kept = flows(b);
    for (Flow& flow : kept)
      if (flow.fate == Fate::kAtStop) flow.position = flow.position.clone();
    collect(b);
    flows(b) = std::move(kept);
  }
}

NamedTensors FlowByFlow::flows_between_steps() {
  NamedTensors all = no_flows(setting_, options_.dtype().toScalarType());
  all["steps"].fill_(steps_taken_);
  for (std::int64_t b = 0; b < samples(); ++b) {
    const Book& one = book(b);
    const auto put = [&](const char* name, std::int64_t place, auto value) { all[name][b][place] = value; };
    for (std::int64_t column = 0; column < kStatistics; ++column)
      if (column != kSteps || one.finished()) put("stats", column, one.stats[static_cast<std::size_t>(column)]);
    put("stop", 0, one.best), put("stop", 1, one.stall);
    for (const Flow& flow : flows(b)) {
      const std::int64_t n = flow.local_id;
      const bool lives = flow.fate == Fate::kActive;
      put("standing", n, static_cast<int>(lives ? kLiving : flow.fate == Fate::kGone ? kLost : kCollected));
      if (flow.fate == Fate::kGone) continue;
      const at::Tensor position = all["position"][b][n];
      position.copy_(flow.position);
      const at::Tensor z = position.select(0, 2);
      put("distance", n, flow.fate == Fate::kAtStop ? 1 - std::abs(z.item<double>()) : flow.distance);
      all["energy"][b].narrow(0, n, 1).copy_(flow.energy);
      put("age", n, flow.steps);
      if (lives)
        all["hidden"][b][n].copy_(flow.hidden);
      else
        z.zero_();
    }
  }
  return all;
}

void FlowByFlow::take_flows(const NamedTensors& state) {
  steps_taken_ = state["steps"].item<std::int64_t>();
  const auto own = [this](const at::Tensor& tensor) { return tensor.to(options_, /*non_blocking=*/false, true); };
  for (std::int64_t b = 0; b < samples(); ++b) {
    const at::Tensor standing = state["standing"][b], stats = state["stats"][b], stop = state["stop"][b];
    Book& one = book(b) = {};
    for (std::int64_t column = 0; column < kStatistics; ++column)
      one.stats[static_cast<std::size_t>(column)] = stats[column].item<std::int32_t>();
    one.best = stop[0].item<std::int64_t>(), one.stall = stop[1].item<std::int64_t>();
    flows(b).clear();
    for (std::int64_t n = 0; n < one.stats[kCreated]; ++n) {
      const auto stands = static_cast<Standing>(standing[n].item<std::int32_t>());
      const auto age = state["age"][b][n].item<std::int64_t>();
      flows(b).push_back({.position = own(state["position"][b][n]),
                          .energy = own(state["energy"][b].narrow(0, n, 1)),
                          .hidden = own(state["hidden"][b][n]),
                          .age = at::full({}, age, options_.dtype(at::kInt)),
                          .local_id = n,
                          .steps = age,
                          .fate = stands == kLiving      ? Fate::kActive
                                  : stands == kCollected ? Fate::kByAge
                                                         : Fate::kGone,
                          .distance = state["distance"][b][n].item<double>()});
      one.active += stands == kLiving;
    }
  }
}

}  // namespace twinbench::energy_flow::flow_forward

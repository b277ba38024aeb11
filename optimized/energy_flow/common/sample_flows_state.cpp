// One sample's flows between two steps, given to others and taken from them.
#include <algorithm>

#include "optimized/energy_flow/common/sample_flows.h"

namespace twinbench::energy_flow::flow_forward {

void SampleFlows::give(const FlowRecords& to) const {
  std::copy(stats_.begin(), stats_.end(), to.stats);
  if (!finished()) to.stats[kSteps] = 0;
  to.stop[0] = stop_.best, to.stop[1] = stop_.stall;
  std::fill_n(to.standing, created(), std::int32_t{kLost});
  for (std::int64_t slot = 0; slot < span_; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (status_[at] != flow_movement::kActive) continue;
    const std::int64_t n = number_[at];
    to.standing[n] = kLiving;
    for (int axis = 0; axis < 3; ++axis) to.position[3 * n + axis] = position_.at(slot, axis);
    to.energy[n] = energy_.at(slot);
    to.age[n] = age_[at];
    for (std::int64_t c = 0; c < to.hidden_floats; ++c) to.hidden[n * to.hidden_floats + c] = hidden_.get(slot, c);
  }
  for (std::int32_t i = 0; i < ended_count_; ++i) {
    const Ended& flow = ended_[static_cast<std::size_t>(i)];
    const std::int64_t n = flow.number;
    to.standing[n] = kCollected;
    to.position[3 * n] = flow.x, to.position[3 * n + 1] = flow.y;
    to.energy[n] = flow.energy, to.distance[n] = flow.distance, to.age[n] = flow.age;
  }
}

void SampleFlows::take(const FlowRecords& from) {
  std::copy_n(from.stats, stats_.size(), stats_.begin());
  stop_ = {.best = from.stop[0],
           .stall = from.stop[1],
           .steps = from.stats[kSteps],
           .reason = static_cast<StopReason>(from.stats[kReason])};
  span_ = created(), active_ = ended_count_ = 0, margin_ = 1;
  std::fill(status_.begin(), status_.end(), 0);
  for (std::int32_t n = 0; n < created(); ++n) {  // each at the place of its number
    const auto at = static_cast<std::size_t>(n);
    number_[at] = n;
    if (from.standing[n] == kCollected)
      ended_[static_cast<std::size_t>(ended_count_++)] = {.x = from.position[3 * n],
                                                          .y = from.position[3 * n + 1],
                                                          .energy = from.energy[n],
                                                          .distance = from.distance[n],
                                                          .age = from.age[n],
                                                          .number = n};
    if (from.standing[n] != kLiving) continue;
    for (int axis = 0; axis < 3; ++axis) position_.at(n, axis) = from.position[3 * n + axis];
    energy_.at(n) = from.energy[n];
    status_[at] = flow_movement::kActive, age_[at] = from.age[n], ++active_;
    for (std::int64_t c = 0; c < from.hidden_floats; ++c) hidden_.set(n, c, from.hidden[n * from.hidden_floats + c]);
  }
}

}  // namespace twinbench::energy_flow::flow_forward

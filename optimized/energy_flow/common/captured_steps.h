// Flow steps as recorded graphs (C32): a bucket of flows has two, as states change between two memories.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/captured_graph.h"
#include "kernels/common/stream.h"

namespace twinbench::energy_flow::flow_forward {
inline namespace TWINBENCH_FORM {

constexpr std::int64_t kLeastBucket = 256;  // flows; the next ones are its multiples by powers of two
constexpr double kLeastCaptureGain = 1.05;  // of the time of eager steps over that of graphs

// How many flows there can be, as far as the host knows without asking the device.
struct MostFlows {
  std::int64_t placed = 0, slots = 0, children = 0;  // children: of a flow in a step at most

  // Before step t: the smallest bucket that holds them, or all slots.
  std::int64_t bucket(std::int32_t t) const {
    std::int64_t flows = placed, rows = kLeastBucket;
    for (; t > 0 && children > 0 && flows > 0 && flows < slots; --t) flows *= 1 + children;
    while (rows < flows && rows < slots) rows *= 2;
    return std::min(rows, slots);
  }
};

// For where nothing is measured: starts of kernels and of graphs, and a graph's nodes, in loops that wait for no work.
constexpr double kStartSeconds = 2.5e-6, kNodeSeconds = 1.3e-6;
inline double expected_eager_seconds(double kernels) { return kernels * kStartSeconds; }
inline double expected_captured_seconds(double kernels) { return kStartSeconds + kernels * kNodeSeconds; }

// All are recorded at once: a pass records none.
class CapturedSteps {
 public:
  CapturedSteps() = default;
  // issue(rows, t, stream) issues a step like step t for at most so many rows.
  template <typename Issue>
  CapturedSteps(const MostFlows& flows, std::int32_t steps, const Issue& issue) {
    std::map<std::pair<std::int64_t, std::int32_t>, std::size_t> known;
    for (std::int32_t t = 0; t < steps; ++t) {
      const std::pair<std::int64_t, std::int32_t> like{flows.bucket(t), t % 2};
      const auto [found, is_new] = known.try_emplace(like, graphs_.size());
      of_step_.push_back(found->second);
      if (is_new)
        graphs_.push_back(kernels::captured_graph("flow step of at most " + std::to_string(like.first) + " flows",
                                                  [&](kernels::Stream on) { issue(like.first, like.second, on); }));
    }
  }

  const std::function<void(kernels::Stream)>& of_step(std::int32_t t) const {
    return graphs_[of_step_[static_cast<std::size_t>(t)]];
  }

 private:
  std::vector<std::function<void(kernels::Stream)>> graphs_;
  std::vector<std::size_t> of_step_;
};

}  // namespace TWINBENCH_FORM
}  // namespace twinbench::energy_flow::flow_forward

// energy_flow.adaptive_stop, optimized on the CPU: a sample's steps one after the other, its state in registers, until
// it finishes. Nothing is allocated and nothing read back after construction.
#include <algorithm>

#include "optimized/energy_flow/adaptive_stop/stop.h"

namespace twinbench::energy_flow::adaptive_stop {
namespace {

class CpuStop final : public Stop {
 public:
  using Stop::Stop;

  // The host knows at once when the last sample has finished: none of the steps is issued in vain.
  void run() override {
    issued_ = 0;
    for (std::int64_t sample = 0; sample < a_.samples; ++sample) {
      Look look;
      for (std::int32_t step = 0; !look.state.finished(); ++step)
        look = looked(a_.rule, step, look, a_.counts(step, sample));
      a_.states.set(sample, look.state);
      a_.flow_steps[sample] = look.flow_steps;
      issued_ = std::max(issued_, look.state.steps);
    }
  }
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuStop>(inputs, setting);
}

}  // namespace twinbench::energy_flow::adaptive_stop

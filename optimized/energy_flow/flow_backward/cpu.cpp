// energy_flow.flow_backward, optimized on the CPU: both halves of the pass, or the first one alone without its tape.
#include "optimized/energy_flow/common/flow_pass.h"
#include "optimized/energy_flow/common/unpacked_sums.h"
#include "optimized/energy_flow/flow_backward/plan.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

using namespace flow_forward;  // the flows are those of the forward pass

class CpuBackward final : public Plan {
 public:
  CpuBackward(const NamedTensors& inputs, const Setting& setting)
      : Plan(setting), pass_(inputs, setting, places(inputs)) {}

  void run() override {
    pass_.forward(samples_);
    if (backward_) pass_.backward(samples_);  // the baseline counts what else `work` tells
  }

  NamedTensors outputs() override {
    if (backward_ && samples_ > 0) unpack_sums(pass_.sums(), pass_.layout(), pass_.parameters(), results_);
    return results_;
  }

 private:
  FlowPass pass_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuBackward>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_backward

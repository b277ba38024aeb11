// energy_flow.flow_backward, library: all flows of the batch at once, and autograd back through them.
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "baselines/energy_flow/common/flows_at_once.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

class Library final : public flow_forward::FlowsAtOnce {
 public:
  Library(const NamedTensors& inputs, const Setting& setting) : FlowsAtOnce(inputs, setting) {}

 private:
  void compute() override {
    const NamedTensors found = lived(inputs_["initial_energy"]);
    at::Tensor surface = found["surface"];
    if (backward_ && !surface.requires_grad())  // no flow has reached it: zero times what flows start with
      surface = at::mul(inputs_["initial_energy"], at::zeros_like(surface));
    result("surface", surface);
    if (backward_) return;
    results_.set("margin", found["margin"]);
    for (const auto& output : outputs_of(*setting_.signature, setting_))
      if (output.name == "work") results_.set("work", at::zeros(extents(output.shape, setting_), at::kLong));
  }
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_backward

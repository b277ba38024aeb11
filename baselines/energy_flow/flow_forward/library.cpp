// energy_flow.flow_forward, library: all flows of the batch at once by LibTorch's own operators, mapper included.
#include "baselines/energy_flow/common/flows_at_once.h"
#include "src/energy_flow/common/flow_calls.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

class Library final : public FlowsAtOnce {
 public:
  Library(const NamedTensors& inputs, const Setting& setting)
      : FlowsAtOnce(inputs, setting), mapper_(inputs_, operands_of(setting, true)) {}

 private:
  void compute() override {
    announce_flow_forward(setting_.size("samples"));
    results_ = lived(mapper_(inputs_["embedding"]));
  }

  const Mapper mapper_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_forward

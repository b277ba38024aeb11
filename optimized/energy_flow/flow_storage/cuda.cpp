// energy_flow.flow_storage, optimized on CUDA: one kernel a step, no read, no host map, nothing allocated.
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/flow_storage/stored.h"

namespace twinbench::energy_flow::flow_storage {
namespace {

class CudaStored final : public Stored {
 public:
  using Stored::Stored;

 private:
  void store(const Step& step) override { launch_step(step, stream()); }
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaStored>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_storage

// Optimized energy_flow.simple_neuron on CUDA: one kernel forward, two backward, no ATen operator in run().
#include <ATen/ATen.h>

#include "kernels/common/simt.h"
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/simple_neuron/neuron.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

class CudaNeuron final : public Neuron<float> {
 public:
  CudaNeuron(const NamedTensors& inputs, const Setting& setting) : Neuron(inputs, setting) {
    if (setting.backward()) make_partial(backward_blocks(arguments_.flows));
  }

  void run() override {
    if (setting_.backward())
      launch_backward(arguments_, stream());
    else
      launch_forward(arguments_, stream());
  }
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaNeuron>(inputs, setting);
}

}  // namespace twinbench::energy_flow::simple_neuron

// Optimized energy_flow.simple_neuron on CUDA: one kernel forward, two backward, no ATen operator in run().
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "kernels/common/simt.h"
#include "kernels/energy_flow/simple_neuron.h"
#include "optimized/energy_flow/simple_neuron_pack.h"

namespace twinbench {
namespace {

kernels::StridedRows rows_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), tensor.stride(0), tensor.stride(1)};
}

class SimpleNeuronCuda : public Runnable {
 public:
  SimpleNeuronCuda(const Values& inputs, const Setting& setting)
      : inputs_(inputs), packed_(energy_flow::pack_simple_neuron(inputs, setting)) {
    const at::Tensor position = inputs["position"], energy = inputs["energy"];
    if (!position.is_cuda())
      throw Error(ErrorKind::kMissingDevice, "position", c10::str(position.device()), "put the inputs on a CUDA device");
    const kernels::SimpleNeuronLayout& layout = packed_.layout;
    const std::int64_t shared = packed_.backward ? kernels::simple_neuron_backward_shared(layout)
                                                 : kernels::simple_neuron_forward_shared(layout);
    if (shared > kernels::simt::kMaxSharedBytes)
      throw Error(ErrorKind::kOutOfRange, "hidden, outputs", c10::str(layout.hidden, ", ", layout.outputs),
                  "the weights must fit into a block's shared memory");
    const std::int64_t flows = packed_.flows;
    arguments_.layout = layout;
    arguments_.round = packed_.round;
    arguments_.flows = flows;
    arguments_.weights = packed_.weights.const_data_ptr<float>();
    arguments_.position = rows_of(position);
    arguments_.energy = rows_of(energy);
    const auto options = position.options();
    if (!packed_.backward) {
      features_ = at::empty({flows, layout.outputs}, options);
      arguments_.features = features_.mutable_data_ptr<float>();
      return;
    }
    grad_position_ = at::empty({flows, 3}, options);
    grad_energy_ = at::empty({flows, 1}, options);
    partial_ = at::empty({kernels::simple_neuron_backward_blocks(flows), layout.total()}, options);
    grad_weights_ = at::empty({layout.total()}, options);
    arguments_.grad_features = rows_of(inputs["grad_features"]);
    arguments_.grad_position = grad_position_.mutable_data_ptr<float>();
    arguments_.grad_energy = grad_energy_.mutable_data_ptr<float>();
    arguments_.partial = partial_.mutable_data_ptr<float>();
    arguments_.grad_weights = grad_weights_.mutable_data_ptr<float>();
  }

  void run() override {
    const c10::cuda::CUDAGuard device(packed_.weights.device());
    const auto stream = c10::cuda::getCurrentCUDAStream().stream();
    if (packed_.backward)
      kernels::launch_simple_neuron_backward(arguments_, stream);
    else
      kernels::launch_simple_neuron_forward(arguments_, stream);
  }

  Values outputs() override {
    if (!packed_.backward) return {{"features", features_}};
    Values results{{"grad_position", grad_position_}, {"grad_energy", grad_energy_}};
    energy_flow::unpack_simple_neuron_gradients(grad_weights_, packed_.layout, results);
    return results;
  }

 private:
  Values inputs_;  // kept alive: the arguments point into them
  energy_flow::PackedSimpleNeuron packed_;
  kernels::SimpleNeuronArguments arguments_;
  at::Tensor features_, grad_position_, grad_energy_, partial_, grad_weights_;
};

}  // namespace

std::unique_ptr<Runnable> energy_flow_simple_neuron_optimized_cuda(const Values& inputs, const Setting& setting) {
  return std::make_unique<SimpleNeuronCuda>(inputs, setting);
}

}  // namespace twinbench

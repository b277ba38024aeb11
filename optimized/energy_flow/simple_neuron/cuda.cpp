// Optimized energy_flow.simple_neuron on CUDA: one kernel forward, two backward, no ATen operator in run().
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "kernels/common/simt.h"
#include "kernels/energy_flow/simple_neuron/arguments.h"
#include "optimized/energy_flow/simple_neuron/pack.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

StridedRows rows_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), tensor.stride(0), tensor.stride(1)};
}

class SimpleNeuronCuda : public Runnable {
 public:
  SimpleNeuronCuda(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs), packed_(energy_flow::simple_neuron::pack_simple_neuron(inputs, setting)) {
    const at::Tensor position = inputs["position"], energy = inputs["energy"];
    if (!position.is_cuda())
      throw Error(ErrorKind::kMissingDevice, "position", c10::str(position.device()), "put the inputs on a CUDA device");
    const SimpleNeuronLayout& layout = packed_.layout;
    const std::int64_t shared = packed_.backward ? simple_neuron_backward_shared(layout)
                                                 : simple_neuron_forward_shared(layout);
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
    partial_ = at::empty({simple_neuron_backward_blocks(flows), layout.total()}, options);
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
      launch_simple_neuron_backward(arguments_, stream);
    else
      launch_simple_neuron_forward(arguments_, stream);
  }

  NamedTensors outputs() override {
    if (!packed_.backward) return {{"features", features_}};
    NamedTensors results{{"grad_position", grad_position_}, {"grad_energy", grad_energy_}};
    energy_flow::simple_neuron::unpack_simple_neuron_gradients(grad_weights_, packed_.layout, results);
    return results;
  }

 private:
  NamedTensors inputs_;  // kept alive: the arguments point into them
  energy_flow::simple_neuron::PackedSimpleNeuron packed_;
  SimpleNeuronArguments arguments_;
  at::Tensor features_, grad_position_, grad_energy_, partial_, grad_weights_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<SimpleNeuronCuda>(inputs, setting);
}

}  // namespace twinbench::energy_flow::simple_neuron

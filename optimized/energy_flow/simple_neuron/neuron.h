// What the simple neuron's two paths share: packed parameters, and arguments that point into inputs and results.
#pragma once

#include <ATen/ops/zeros_like.h>

#include "kernels/energy_flow/simple_neuron/arguments.h"
#include "optimized/common/packing.h"

namespace twinbench::energy_flow::simple_neuron {

template <class Real>
class Neuron : public Runnable {
 public:
  Neuron(const NamedTensors& inputs, const Setting& setting)
      : setting_(setting),
        inputs_(inputs),
        weights_(pack_parameters(inputs, setting)),
        results_(zero_results(setting)),
        arguments_{.layout = {static_cast<int>(setting.size("hidden")), static_cast<int>(setting.size("outputs"))},
                   .round = rounds_operands(setting),
                   .flows = setting.size("flows"),
                   .weights = data<Real>(weights_),
                   .position = strided_rows<Real>(inputs["position"]),
                   .energy = strided_rows<Real>(inputs["energy"])} {
    if (!setting.backward()) {
      arguments_.features = data<Real>(results_["features"]);
      return;
    }
    grad_weights_ = at::zeros_like(weights_);
    arguments_.grad_features = strided_rows<Real>(inputs["grad_features"]);
    arguments_.grad_position = data<Real>(results_["grad_position"]);
    arguments_.grad_energy = data<Real>(results_["grad_energy"]);
    arguments_.grad_weights = data<Real>(grad_weights_);
  }

  NamedTensors outputs() override {
    if (setting_.backward()) unpack_gradients(grad_weights_, setting_, results_);
    return results_;
  }

 protected:
  // Gradients of the parameters, summed by `pieces` blocks or threads.
  void make_partial(std::int64_t pieces) {
    partial_ = at::empty({pieces, arguments_.layout.padded()}, weights_.options());
    arguments_.partial = data<Real>(partial_);
  }

  Setting setting_;
  NamedTensors inputs_;  // kept alive: the arguments point into them
  at::Tensor weights_, grad_weights_, partial_;
  NamedTensors results_;
  Arguments<Real> arguments_;
};

}  // namespace twinbench::energy_flow::simple_neuron

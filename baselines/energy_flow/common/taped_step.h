// The tape of the flow by flow baseline (C17): what every operator of one flow-step gave, and its replay, operator by
// operator, each weight's gradient read, changed and written back once a flow-step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/named_tensors.h"
#include "src/setting.h"

namespace twinbench::energy_flow::flow_forward {

// A linear layer and the sums of its gradients. `mode`: of its operands; x and the weight come as operands.
struct TapedLinear {
  at::Tensor weight, bias, grad_weight, grad_bias;
  Dtype mode = Dtype::kFp32;
  static TapedLinear of(const NamedTensors& inputs, const NamedTensors& gradients, const std::string& weight,
                        const std::string& bias, Dtype mode);
  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor backward(const at::Tensor& gradient, const at::Tensor& x) const;  // of x
};
struct TapedNorm {
  at::Tensor gain, shift, grad_gain, grad_shift;
};

// Of a flow: what the loss says of its state after a step, or, once that step is replayed, before it.
struct Adjoint {
  at::Tensor position, energy, hidden;  // [1, 3], [1, 1], [1, layers, width]
};

// One flow, one step: the specification's list of C34, and the moments that ATen's normalisation returns. What a layer
// of neuron or heads multiplies is kept as its operand.
struct TapedStep {
  struct Hidden {
    at::Tensor product, normal, active, mean, deviation;
  };
  struct Gates {
    at::Tensor input, reset, update, candidate, hidden_candidate;
  };
  at::Tensor position, energy;  // p, e
  at::Tensor state;             // u
  Hidden neuron[2];
  at::Tensor features;          // o
  at::Tensor raw_input, input;  // v, guarded v
  at::Tensor hidden;            // [1, layers, width], guarded h
  std::vector<Gates> layers;
  at::Tensor carried, next;  // guarded g and h'
  at::Tensor energy_hidden, energy_active, next_energy;
  at::Tensor displacement_hidden, displacement_active, displacement, delta;
  at::Tensor child;  // in gate mode

  std::int64_t sample = 0;
  std::size_t flow = 0;
  double slope_x = 1, slope_y = 1;    // of the reflection
  std::int64_t requested = 0;         // children
  std::vector<std::size_t> children;  // those admitted, by their places among the sample's flows

  std::int64_t bytes() const;
};

// Neuron, recurrent unit and heads, forward onto the tape and back from it.
class TapedNetworks {
 public:
  // gradients: grad_<parameter>, zeroed by whoever runs.
  TapedNetworks(const NamedTensors& inputs, const NamedTensors& gradients, const Setting& setting);

  // From step.position, .energy and the hidden state [1, layers, width]; everything else is filled in.
  void forward(TapedStep& step, const at::Tensor& hidden) const;
  at::Tensor gate(const TapedStep& step) const;  // the spawn gate, which no gradient passes
  // `after` becomes what it was before the step; children's are those at their birth.
  void backward(const TapedStep& step, Adjoint& after, const std::vector<Adjoint>& flows) const;

 private:
  struct Layer {
    TapedLinear input, hidden;
  };
  at::Tensor heads_backward(const TapedStep& step, const Adjoint& after, const std::vector<Adjoint>& flows) const;
  // Gradients of what the layer multiplied and of its hidden state.
  std::pair<at::Tensor, at::Tensor> cell_backward(const TapedStep& step, std::size_t layer,
                                                  const at::Tensor& gradient) const;
  at::Tensor neuron_backward(const TapedStep& step, const at::Tensor& gradient) const;  // of the state

  const Dtype mode_;    // of neuron and heads; the recurrent layers stay as they are (0.3)
  const Dtype stores_;  // hidden states
  const double scale_;  // lambda at this optimizer step
  const bool gate_;
  TapedLinear coordinates_, neuron_[3];
  TapedNorm norms_[2];
  std::vector<Layer> layers_;
  TapedLinear energy_hidden_, energy_out_, displacement_hidden_, displacement_out_, child_;
  at::Tensor gate_hidden_weight_, gate_hidden_bias_, gate_out_weight_, gate_out_bias_;
};

}  // namespace twinbench::energy_flow::flow_forward

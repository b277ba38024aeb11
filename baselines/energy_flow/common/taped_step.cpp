// Operators of one flow's step, one row each, and the derivative of each.
#include "baselines/energy_flow/common/taped_step.h"

#include <ATen/ATen.h>

#include <array>
#include <limits>

#include "baselines/energy_flow/common/exploration.h"
#include "baselines/energy_flow/common/networks.h"
#include "src/stored_states.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

// What passes back through a guard whose input was `value`.
at::Tensor unguarded(const at::Tensor& gradient, const at::Tensor& value) {
  return at::where(at::le(at::abs(value), 10.0), gradient, 0.0);
}

}  // namespace

TapedLinear TapedLinear::of(const NamedTensors& inputs, const NamedTensors& gradients, const std::string& weight,
                            const std::string& bias, Dtype mode) {
  TapedLinear layer{inputs[weight], inputs[bias], {}, {}, mode};
  if (gradients.contains("grad_" + weight))
    layer.grad_weight = gradients["grad_" + weight], layer.grad_bias = gradients["grad_" + bias];
  return layer;
}
at::Tensor TapedLinear::forward(const at::Tensor& x) const { return at::linear(x, weight, bias); }
at::Tensor TapedLinear::backward(const at::Tensor& gradient, const at::Tensor& x) const {
  const at::Tensor operand = rounded(gradient, mode);
  at::Tensor(grad_weight).addmm_(operand.t(), x);
  at::Tensor(grad_bias).add_(gradient.select(0, 0));
  return at::mm(operand, weight);
}

std::int64_t TapedStep::bytes() const {
  std::vector<at::Tensor> all = {position,
                                 energy,
                                 state,
                                 features,
                                 raw_input,
                                 input,
                                 hidden,
                                 carried,
                                 next,
                                 energy_hidden,
                                 energy_active,
                                 next_energy,
                                 displacement,
                                 displacement_hidden,
                                 displacement_active,
                                 delta};
  for (const Hidden& one : neuron)
    all.insert(all.end(), {one.product, one.normal, one.active, one.mean, one.deviation});
  for (const Gates& one : layers)
    all.insert(all.end(), {one.input, one.reset, one.update, one.candidate, one.hidden_candidate});
  if (child.defined()) all.push_back(child);
  std::int64_t sum = 0;
  for (const at::Tensor& tensor : all) sum += static_cast<std::int64_t>(tensor.nbytes());
  return sum;
}

TapedNetworks::TapedNetworks(const NamedTensors& inputs, const NamedTensors& gradients, const Setting& setting)
    : mode_(setting.rounds_as()),
      stores_(stores_as(setting)),
      scale_(scheduled_scale(setting)),
      gate_(setting.option("spawn") == 2) {
  const auto linear = [&](const std::string& prefix, const std::string& suffix) {
    return TapedLinear::of(inputs, gradients, prefix + "weight" + suffix, prefix + "bias" + suffix, mode_);
  };
  coordinates_ = linear("coordinate_", "");
  for (std::size_t l = 0; l < 3; ++l) {
    const std::string number = std::to_string(l + 1);
    neuron_[l] = linear("neuron_", "_" + number);
    if (l == 2) break;
    const std::string gain = "neuron_gain_" + number, shift = "neuron_shift_" + number;
    norms_[l] = {inputs[gain], inputs[shift], {}, {}};
    if (gradients.contains("grad_" + gain))
      norms_[l].grad_gain = gradients["grad_" + gain], norms_[l].grad_shift = gradients["grad_" + shift];
  }
  for (std::int64_t l = 0; l < setting.size("layers"); ++l) {
    const std::string number = "_" + std::to_string(l);
    const auto recurrent = [&](const std::string& of) {
      return TapedLinear::of(inputs, gradients, "weight_" + of + number, "bias_" + of + number, Dtype::kFp32);
    };
    layers_.push_back({recurrent("input"), recurrent("hidden")});
  }
  energy_hidden_ = linear("energy_hidden_", ""), energy_out_ = linear("energy_out_", "");
  displacement_hidden_ = linear("displacement_hidden_", ""), displacement_out_ = linear("displacement_out_", "");
  child_ = linear("child_", "");
  gate_hidden_weight_ = inputs["gate_hidden_weight"], gate_hidden_bias_ = inputs["gate_hidden_bias"];
  gate_out_weight_ = inputs["gate_out_weight"], gate_out_bias_ = inputs["gate_out_bias"];
}

void TapedNetworks::forward(TapedStep& step, const at::Tensor& hidden) const {
  // An energy that is no number makes features that are none, which the guard replaces. The layers get a zero in its
  // place: what the guard stops must not come back as zero times NaN.
  const at::Tensor usable = at::isfinite(step.energy);
  step.position = rounded(step.position, mode_);
  step.state =
      rounded(at::cat({coordinates_.forward(step.position), at::nan_to_num(step.energy, 0.0, 0.0, 0.0)}, 1), mode_);
  at::Tensor x = step.state;
  for (std::size_t l = 0; l < 2; ++l) {
    TapedStep::Hidden& one = step.neuron[l];
    one.product = neuron_[l].forward(x);
    std::tie(one.normal, one.mean, one.deviation) =
        at::native_layer_norm(one.product, {one.product.size(1)}, norms_[l].gain, norms_[l].shift, 1e-5);
    x = one.active = rounded(at::gelu(one.normal), mode_);
  }
  step.features = at::where(usable, neuron_[2].forward(x), std::numeric_limits<double>::quiet_NaN());
  step.raw_input = at::cat({step.features, step.energy}, 1);
  step.input = guarded(step.raw_input);
  step.hidden = guarded(hidden);
  std::vector<at::Tensor> next;
  step.layers.resize(layers_.size());
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const at::Tensor h = step.hidden.select(1, static_cast<std::int64_t>(l));
    TapedStep::Gates& gates = step.layers[l];
    gates.input = l == 0 ? step.input.clone() : next.back();
    const at::Tensor from_input = layers_[l].input.forward(gates.input), from_hidden = layers_[l].hidden.forward(h);
    const auto block = [width = h.size(1)](const at::Tensor& t, std::int64_t i) {
      return t.narrow(1, i * width, width);
    };
    gates.reset = at::sigmoid(at::add(block(from_input, 0), block(from_hidden, 0)));
    gates.update = at::sigmoid(at::add(block(from_input, 1), block(from_hidden, 1)));
    gates.hidden_candidate = block(from_hidden, 2).clone();
    gates.candidate = at::tanh(at::add(block(from_input, 2), at::mul(gates.reset, gates.hidden_candidate)));
    next.push_back(at::add(at::mul(at::rsub(gates.update, 1), gates.candidate), at::mul(gates.update, h)));
  }
  step.carried = rounded(guarded(next.back()), mode_);
  step.next = rounded(guarded(at::stack(next, 1)), stores_);
  step.energy_hidden = energy_hidden_.forward(step.carried);
  step.energy_active = rounded(at::gelu(step.energy_hidden), mode_);
  step.next_energy = at::nan_to_num(at::tanh(energy_out_.forward(step.energy_active)), 0.0);
  step.displacement_hidden = displacement_hidden_.forward(step.carried);
  step.displacement_active = rounded(at::gelu(step.displacement_hidden), mode_);
  step.displacement = displacement_out_.forward(step.displacement_active);
  step.delta = at::clamp(at::mul(step.displacement, scale_), -0.5, 0.5);
  if (gate_) step.child = at::tanh(child_.forward(step.carried));
}

at::Tensor TapedNetworks::gate(const TapedStep& step) const {
  const at::Tensor hidden = rounded(at::gelu(at::linear(step.carried, gate_hidden_weight_, gate_hidden_bias_)), mode_);
  return at::sigmoid(at::linear(hidden, gate_out_weight_, gate_out_bias_));
}

void TapedNetworks::backward(const TapedStep& step, Adjoint& after, const std::vector<Adjoint>& flows) const {
  for (const std::size_t child : step.children) {
    after.hidden.add_(flows[child].hidden);
    if (!gate_) after.energy.add_(flows[child].energy);
  }
  const std::array<double, 2> slopes = {step.slope_x, step.slope_y};
  for (std::int64_t axis = 0; axis < 2; ++axis)
    after.position.select(1, axis).mul_(slopes[static_cast<std::size_t>(axis)]);
  at::Tensor above = unguarded(heads_backward(step, after, flows), step.carried);
  const at::Tensor stored = unguarded(after.hidden, step.next);
  std::vector<at::Tensor> hidden(layers_.size());
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const at::Tensor gradient = at::add(stored.select(1, static_cast<std::int64_t>(l)), above);
    std::tie(above, hidden[l]) = cell_backward(step, l, gradient);
  }
  const at::Tensor input = unguarded(above, step.raw_input);
  const at::Tensor state = neuron_backward(step, input.narrow(1, 0, step.features.size(1)));
  const at::Tensor place = coordinates_.backward(state.narrow(1, 0, 3), step.position);
  after.position = at::add(after.position, place);
  for (const std::size_t child : step.children) after.position.add_(flows[child].position);
  after.energy = at::add(input.narrow(1, step.features.size(1), 1), state.narrow(1, 3, 1));
  after.hidden = unguarded(at::stack(hidden, 1), step.hidden);
}

// Of what the heads multiplied.
at::Tensor TapedNetworks::heads_backward(const TapedStep& step, const Adjoint& after,
                                         const std::vector<Adjoint>& flows) const {
  const at::Tensor length = at::abs(at::mul(step.displacement, scale_));
  const at::Tensor inside = decided_each(at::le(length, 0.5), [&] { return at::abs(at::sub(length, 0.5)); });
  const at::Tensor moved = at::where(inside, at::mul(after.position, scale_), 0.0);
  const at::Tensor by_displacement = displacement_hidden_.backward(
      at::gelu_backward(displacement_out_.backward(moved, step.displacement_active), step.displacement_hidden),
      step.carried);
  const at::Tensor shone = at::tanh_backward(after.energy, step.next_energy);
  const at::Tensor by_energy = energy_hidden_.backward(
      at::gelu_backward(energy_out_.backward(shone, step.energy_active), step.energy_hidden), step.carried);
  at::Tensor sum = at::add(by_displacement, by_energy);
  for (std::size_t i = 0; gate_ && i < step.children.size(); ++i) {
    const at::Tensor shared = at::div(flows[step.children[i]].energy, step.requested + 1);
    sum.add_(child_.backward(at::tanh_backward(shared, step.child), step.carried));
  }
  return sum;
}

std::pair<at::Tensor, at::Tensor> TapedNetworks::cell_backward(const TapedStep& step, std::size_t layer,
                                                               const at::Tensor& gradient) const {
  const TapedStep::Gates& gates = step.layers[layer];
  const at::Tensor h = step.hidden.select(1, static_cast<std::int64_t>(layer));
  const at::Tensor to_candidate = at::mul(gradient, at::rsub(gates.update, 1));
  const at::Tensor to_update = at::mul(gradient, at::sub(h, gates.candidate));
  const at::Tensor direct = at::mul(gradient, gates.update);
  const at::Tensor candidate = at::tanh_backward(to_candidate, gates.candidate);
  const at::Tensor reset = at::sigmoid_backward(at::mul(candidate, gates.hidden_candidate), gates.reset);
  const at::Tensor update = at::sigmoid_backward(to_update, gates.update);
  const at::Tensor hidden_candidate = at::mul(candidate, gates.reset);
  const at::Tensor below = layers_[layer].input.backward(at::cat({reset, update, candidate}, 1), gates.input);
  const at::Tensor before = layers_[layer].hidden.backward(at::cat({reset, update, hidden_candidate}, 1), h);
  return {below, at::add(direct, before)};
}

at::Tensor TapedNetworks::neuron_backward(const TapedStep& step, const at::Tensor& gradient) const {
  at::Tensor x = neuron_[2].backward(gradient, step.neuron[1].active);
  for (std::size_t l = 2; l-- > 0;) {
    const TapedStep::Hidden& one = step.neuron[l];
    const auto [product, gain, shift] =
        at::native_layer_norm_backward(at::gelu_backward(x, one.normal), one.product, {one.product.size(1)}, one.mean,
                                       one.deviation, norms_[l].gain, norms_[l].shift, {true, true, true});
    at::Tensor(norms_[l].grad_gain).add_(gain);
    at::Tensor(norms_[l].grad_shift).add_(shift);
    x = neuron_[l].backward(product, l == 0 ? step.state : step.neuron[0].active);
  }
  return x;
}

}  // namespace twinbench::energy_flow::flow_forward

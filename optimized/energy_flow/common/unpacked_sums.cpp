// From the order of the sums to the parameters' own layouts.
#include "optimized/energy_flow/common/unpacked_sums.h"

#include <ATen/ATen.h>

#include <string>

namespace twinbench::energy_flow::flow_forward {

at::Tensor lane_sums(const at::Tensor& of) { return of.sum(1); }

void unpack_sums(const at::Tensor& sums, const GradientLayout& layout, const Parameters& parameters,
                 const NamedTensors& results, const OfLanes& of_lanes) {
  const GradientLayout& at = layout;
  const HeadsPack& heads = parameters.heads;
  const std::int64_t width = heads.hidden;
  const auto part = [&](std::int64_t from, at::IntArrayRef shape) {
    return sums.narrow(0, from, c10::multiply_integers(shape)).view(shape);
  };
  const auto vector = [&](std::int64_t from, std::int64_t channels) {
    return of_lanes(part(from, {channels, kLanes}));
  };
  const auto set = [&](const std::string& name, const at::Tensor& value) { results["grad_" + name].copy_(value); };
  unpack_neuron(part(at.neuron, {parameters.neuron_layout.total()}), parameters.neuron_layout, results);
  for (std::size_t l = 0; l < at.layers.size(); ++l) {
    const std::string number = "_" + std::to_string(l);
    const at::Tensor hidden = part(at.layers[l].hidden, {3 * width, width}),
                     bias = vector(at.layers[l].bias, 4 * width);
    set("weight_input" + number, part(at.layers[l].input, {3 * width, parameters.layers[l].layout.input}));
    set("weight_hidden" + number, at::cat({hidden.narrow(0, width, 2 * width), hidden.narrow(0, 0, width)}));
    set("bias_input" + number, bias.narrow(0, width, 3 * width));
    set("bias_hidden" + number, at::cat({bias.narrow(0, width, 2 * width), bias.narrow(0, 0, width)}));
  }
  const std::int64_t trained = heads.gated() + (heads.gate ? 1 : 0);
  const at::Tensor first = part(at.first, {trained, width}), bias = vector(at.first_bias, trained),
                   out_bias = vector(at.out_bias, 4);
  set("energy_hidden_weight", first.narrow(0, 0, heads.energy));
  set("energy_hidden_bias", bias.narrow(0, 0, heads.energy));
  set("displacement_hidden_weight", first.narrow(0, heads.energy, heads.head));
  set("displacement_hidden_bias", bias.narrow(0, heads.energy, heads.head));
  set("energy_out_weight", part(at.energy_out, {1, heads.energy}));
  set("energy_out_bias", out_bias.narrow(0, 0, 1));
  set("displacement_out_weight", part(at.displacement_out, {3, heads.head}));
  set("displacement_out_bias", out_bias.narrow(0, 1, 3));
  if (!heads.gate) return;
  set("child_weight", first.narrow(0, heads.gated(), 1));
  set("child_bias", bias.narrow(0, heads.gated(), 1));
}

}  // namespace twinbench::energy_flow::flow_forward

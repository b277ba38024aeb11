// energy_flow.simple_neuron (C06): the shared per-flow feature network, from position and energy to features.
#include <limits>

#include "src/operand_bytes.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

Signature signature() {
  const Tolerance features{Tolerance::Kind::kBound, {1e-5, 2e-6}, {2e-2, 5e-3}, "C06"};
  // Biases, gains and shifts start at 0, 1 and 0 in training; here they are spread, so that dropping one shows.
  return {
      .inputs = {data("position", "flows, 3", from_case(1, 0.5)).clamped(-1, 1),
                 data("energy", "flows, 1", from_case(2)), weight("coordinate_weight", "3, 3", kaiming(3)),
                 bias("coordinate_bias", "3", normal(4, 0.1)), weight("weight_1", "hidden, 4", kaiming(5)),
                 bias("bias_1", "hidden", normal(6, 0.1)), gain("gain_1", "hidden", normal(7, 0.1)).shifted(1),
                 bias("shift_1", "hidden", normal(8, 0.1)), weight("weight_2", "hidden, hidden", kaiming(9)),
                 bias("bias_2", "hidden", normal(10, 0.1)), gain("gain_2", "hidden", normal(11, 0.1)).shifted(1),
                 bias("shift_2", "hidden", normal(12, 0.1)), weight("weight_3", "outputs, hidden", kaiming(13)),
                 bias("bias_3", "outputs", normal(14, 0.1))},
      .outputs = {output("features", "flows, outputs", features).with_nan().with_gradient(15)},
  };
}

void plant_nan(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  const auto every = static_cast<std::int64_t>(setting.option("nan_every"));
  if (every > 0) plant(inputs["energy"], every, {std::numeric_limits<float>::quiet_NaN()});
}

Cost cost(const Setting& setting) {
  const auto [flows, hidden, outputs] = real_sizes<3>(setting, {"flows", "hidden", "outputs"});
  const double products = 9 + 4 * hidden + hidden * hidden + hidden * outputs;  // multiply-adds of one flow
  const double others = 3 + 6 * hidden + outputs, weights = operand_bytes(setting) * products;
  if (!setting.backward()) return {weights + 4 * (flows * (4 + outputs) + others), 2 * flows * products};
  // Reads position, energy, the output's gradient and the weights; writes gradients of all but the output.
  // Products: the recomputed forward, and two for each of its layers.
  return {weights + 4 * (flows * (8 + outputs) + products + 2 * others), 6 * flows * products};
}

// A tape without a single flow still asks for 14 zero gradients. The first flow's gradients need no addition (-12), and
// the tape ends with one concatenation of the rows and one for each split input (+3).
std::int64_t baseline_dispatches(const Setting& setting) {
  const std::int64_t flows = setting.size("flows");
  if (!setting.backward()) return flows == 0 ? 0 : 9 * flows + 1;
  return flows == 0 ? 14 : 37 * flows - 9;
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = plant_nan;
  spec.proof = {{"dispatches", "", baseline_dispatches, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting&) { return 1; };
  return spec;
}

}  // namespace twinbench::energy_flow::simple_neuron

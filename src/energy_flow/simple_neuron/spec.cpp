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
      .sizes = {{"flows", 0}, {"hidden", 1, 4096}, {"outputs", 1, 4096}},
      .options = {of_inputs(count_option("nan_every", 0, 0, 1 << 20, "every n-th energy is NaN; 0: none"))},
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

Case shaped(std::string name, std::int64_t flows, std::int64_t hidden = 32, std::int64_t outputs = 64) {
  return sized_case(std::move(name), {{"flows", flows}, {"hidden", hidden}, {"outputs", outputs}});
}

std::vector<Case> cases() {
  return {
      shaped("tiny", 4, 4, 3),
      shaped("odd", 37, 29, 61),
      shaped("tile_minus", 31),
      shaped("tile_plus", 33, 33, 65),
      shaped("one", 1),
      degenerate(shaped("empty", 0)),
      distributed(shaped("", 256), "uniform"),
      degenerate(distributed(shaped("", 37), "zeros")),
      distributed(shaped("", 256), "heavy_tail"),
      distributed(shaped("", 101), "adversarial"),
      with_options(shaped("nan_energy", 37), {{"nan_every", 5}}),  // NaN must stay in its own flows
      timed(shaped("train", 1024)),
      timed(shaped("stress", 5000)),  // D0's cap on active flows
      backward(shaped("tiny", 4, 4, 3)),
      backward(shaped("odd", 37, 29, 61)),
      backward(shaped("one", 1)),
      degenerate(backward(shaped("empty", 0))),
      backward(distributed(shaped("", 101), "adversarial")),
      timed(backward(shaped("train", 512))),
  };
}

void plant_nan(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  const auto every = static_cast<std::int64_t>(setting.option("nan_every"));
  const at::Tensor& energy = inputs["energy"];
  for (std::int64_t i = 0; every > 0 && i < energy.numel(); i += every)
    energy.mutable_data_ptr<float>()[i] = std::numeric_limits<float>::quiet_NaN();
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
  spec.summary =
      "Feature network of a flow: position and energy through three small linear layers with LayerNorm and GELU.";
  spec.source = "energy_flow C06";
  spec.sin = "one flow at a time: nine operators and their temporaries for every flow";
  spec.dtypes = {Dtype::kFp32, Dtype::kBf16};
  spec.signature = signature();
  spec.batch_size = "flows";
  spec.cases = cases();
  spec.finish_inputs = plant_nan;
  spec.proof = {
      {"dispatches",
       "forward 9 * flows + 1: coordinate linear, concatenation, 2 x (linear, LayerNorm, GELU), linear; and one "
       "concatenation of the rows. backward 37 * flows - 9: besides, 16 operators and 12 weight-gradient additions "
       "per flow",
       baseline_dispatches, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting&) { return 1; };
  spec.claims = {
      {"D0", "the neuron takes 0.01 ms per flow, 50 ms for 5 000 flows, called flow by flow", "50 ms", std::nullopt,
       "unproven: nine launches of about 3 us each already exceed it; only the table's total is a usable model"},
      {"D1", "the neuron uses 5 % of the device and can use 90 %", "18x", 18.0,
       "unproven: utilisation of one component cannot be measured; bytes per second are shown instead"},
  };
  return spec;
}

}  // namespace twinbench::energy_flow::simple_neuron

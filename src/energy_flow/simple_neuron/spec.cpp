// energy_flow.simple_neuron (C06): the shared per-flow feature network, from position and energy to features.
#include <ATen/ops/clamp.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "src/draws.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

using draws::drawn;
using draws::literal;
using draws::normal;
using draws::toy_bias;
using draws::toy_weight;

Case shaped(std::string name, std::int64_t flows, std::int64_t hidden = 32, std::int64_t outputs = 64) {
  return sized_case(std::move(name), {{"flows", flows}, {"hidden", hidden}, {"outputs", outputs}});
}

std::vector<Case> cases() {
  Case nan = shaped("nan_energy", 37);
  nan.options = {{"nan_every", 5}};  // energies 0, 5, 10, ... are NaN: they must stay in their own flows
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
      nan,
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

// Weight names in the order that every variant expects; gradients are these with "grad_" in front.
struct Weight {
  const char* name;
  double offset, spread;  // mean and standard deviation
};

NamedTensors make_inputs(const Setting& setting, std::uint64_t seed) {
  const auto flows = setting.size("flows"), hidden = setting.size("hidden"), outputs = setting.size("outputs");
  const auto spread = [](std::int64_t fan_out) { return std::sqrt(2.0 / static_cast<double>(fan_out)); };
  const auto& distribution = setting.input_case.distribution;
  at::Tensor energy = drawn(distribution, {flows, 1}, seed, 2);
  const auto nan_every = static_cast<std::int64_t>(setting.option_or("nan_every", 0));
  for (std::int64_t i = 0; nan_every > 0 && i < flows; i += nan_every)
    energy.mutable_data_ptr<float>()[i] = std::numeric_limits<float>::quiet_NaN();
  // Biases, gains and shifts start at 0, 1 and 0 in training; here they are spread, so that dropping one shows.
  NamedTensors inputs{
      {"position", drawn(distribution, {flows, 3}, seed, 1, 0.5).clamp_(-1.0, 1.0)},
      {"energy", energy},
      {"coordinate_weight", normal({3, 3}, seed, 3, spread(3))},
      {"coordinate_bias", normal({3}, seed, 4, 0.1)},
      {"weight_1", normal({hidden, 4}, seed, 5, spread(hidden))},
      {"bias_1", normal({hidden}, seed, 6, 0.1)},
      {"gain_1", normal({hidden}, seed, 7, 0.1).add_(1.0)},
      {"shift_1", normal({hidden}, seed, 8, 0.1)},
      {"weight_2", normal({hidden, hidden}, seed, 9, spread(hidden))},
      {"bias_2", normal({hidden}, seed, 10, 0.1)},
      {"gain_2", normal({hidden}, seed, 11, 0.1).add_(1.0)},
      {"shift_2", normal({hidden}, seed, 12, 0.1)},
      {"weight_3", normal({outputs, hidden}, seed, 13, spread(outputs))},
      {"bias_3", normal({outputs}, seed, 14, 0.1)},
  };
  if (setting.input_case.pass == Pass::kBackward)
    inputs.set("grad_features", drawn("normal", {flows, outputs}, seed, 15));
  return inputs;
}

Golden toy_golden(const std::string& name, at::Tensor position, double energy, at::Tensor features) {
  Setting setting;
  setting.input_case = shaped(name, 1, 4, 3);
  return {name,
          setting,
          {{"position", std::move(position)},
           {"energy", literal({1, 1}, {energy})},
           {"coordinate_weight", toy_weight(3, 3, 7)},
           {"coordinate_bias", toy_bias(3, 0)},
           {"weight_1", toy_weight(4, 4, 8)},
           {"bias_1", toy_bias(4, 1)},
           {"gain_1", at::ones({4})},
           {"shift_1", at::zeros({4})},
           {"weight_2", toy_weight(4, 4, 9)},
           {"bias_2", toy_bias(4, 2)},
           {"gain_2", at::ones({4})},
           {"shift_2", at::zeros({4})},
           {"weight_3", toy_weight(3, 4, 10)},
           {"bias_3", toy_bias(3, 3)}},
          {{"features", std::move(features)}}};
}

// Parameters: 3*3 + 3 for the coordinates, then three linear layers and two layer normalisations.
double parameter_count(double hidden, double outputs) {
  return 12 + 5 * hidden + 2 * hidden + hidden * hidden + 3 * hidden + hidden * outputs + outputs;
}

Cost cost(const Setting& setting) {
  const auto flows = static_cast<double>(setting.size("flows"));
  const auto hidden = static_cast<double>(setting.size("hidden")), outputs = static_cast<double>(setting.size("outputs"));
  const double products = 9 + 4 * hidden + hidden * hidden + hidden * outputs;  // multiply-adds of one flow
  const double parameters = parameter_count(hidden, outputs);
  if (setting.input_case.pass == Pass::kForward) return {4 * (flows * (4 + outputs) + parameters), 2 * flows * products};
  // Reads position, energy, the output's gradient and the weights; writes gradients of all but the output.
  // Products: the recomputed forward, and two for each of its layers.
  return {4 * (flows * (8 + outputs) + 2 * parameters), 6 * flows * products};
}

// A tape without a single flow still asks for 14 zero gradients. The first flow's gradients need no addition (-12), and
// the tape ends with one concatenation of the rows and one for each split input (+3).
std::int64_t baseline_dispatches(const Setting& setting) {
  const std::int64_t flows = setting.size("flows");
  if (setting.input_case.pass == Pass::kForward) return flows == 0 ? 0 : 9 * flows + 1;
  return flows == 0 ? 14 : 37 * flows - 9;
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.pipeline = "energy_flow";
  spec.name = "simple_neuron";
  spec.summary = "Feature network of a flow: position and energy through three small linear layers with LayerNorm and GELU.";
  spec.source = "energy_flow C06";
  spec.sin = "one flow at a time: nine operators and their temporaries for every flow";
  spec.dtypes = {Dtype::kFp32, Dtype::kBf16};
  spec.cases = cases();
  spec.make_inputs = make_inputs;

  const Tolerance forward{Tolerance::Kind::kBound, {1e-5, 2e-6}, {2e-2, 5e-3}, "C06"};
  const Tolerance gradient{Tolerance::Kind::kGradient, {1e-4, 0}, {5e-2, 0}, "grad"};
  spec.outputs = {{"features", forward, 0, /*nan_allowed=*/true}};
  spec.gradients = {{"grad_position", gradient, 0, false}, {"grad_energy", gradient, 0, false}};
  for (const char* name : {"coordinate_weight", "coordinate_bias", "weight_1", "bias_1", "gain_1", "shift_1", "weight_2",
                           "bias_2", "gain_2", "shift_2", "weight_3", "bias_3"})
    spec.gradients.push_back({std::string("grad_") + name, gradient, std::nullopt, false});
  spec.batched_inputs = {{"position", 0}, {"energy", 0}, {"grad_features", 0}};
  spec.batch_size = "flows";

  spec.proof = {
      {"dispatches",
       "forward 9 * flows + 1: coordinate linear, concatenation, 2 x (linear, LayerNorm, GELU), linear; and one "
       "concatenation of the rows. backward 37 * flows - 9: besides, 16 operators and 12 weight-gradient additions per flow",
       baseline_dispatches, [](const Setting&) { return std::int64_t{0}; }},
  };
  spec.cost = cost;
  spec.claims = {
      {"D0", "the neuron takes 0.01 ms per flow, 50 ms for 5 000 flows, called flow by flow", "50 ms", std::nullopt,
       "unproven: nine launches of about 3 us each already exceed it; only the table's total is a usable model"},
      {"D1", "the neuron uses 5 % of the device and can use 90 %", "18x", 18.0,
       "unproven: utilisation of one component cannot be measured; bytes per second are shown instead"},
  };
  spec.goldens = {
      [] {
        return toy_golden("C06", literal({1, 3}, {0.5, -0.25, 0.0}), 0.8, literal({1, 3}, {0.001032, -0.718336, 0.630416}));
      },
      [] {
        return toy_golden("section_7_flow_1", literal({1, 3}, {1.0, -1.0, 0.0}), 0.94287429,
                          literal({1, 3}, {-0.03574158, -0.77943137, 0.71016033}));
      },
  };
  return spec;
}

}  // namespace twinbench::energy_flow::simple_neuron

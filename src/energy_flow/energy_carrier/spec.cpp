// energy_flow.energy_carrier (C07): the gated recurrent unit that carries a flow's state from step to step.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "src/draws.h"
#include "src/operand_bytes.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

// Gate blocks lie in the order reset, update, candidate. Guards pass [-10, 10] and replace NaN by zero.
Signature signature() {
  // Layers chain: in bf16 a last-bit difference flips the rounding of the next layer's operand.
  const Tolerance chained{Tolerance::Kind::kBound, {2e-5, 5e-6}, {2e-2, 5e-3},
                          "op per layer",          {2e-5, 2e-6}, {2e-3, 1e-3}};
  const std::string input = "3 * hidden, layer == 0 ? features + 1 : hidden";
  return {
      .inputs = {data("features", "flows, features", from_case(0)), data("energy", "flows", from_case(1)),
                 data("hidden", "layers, flows, hidden", from_case(2)).batch(1),
                 weight("weight_input", input, xavier(16)).one_per("layers", 4),
                 weight("weight_hidden", "3 * hidden, hidden", xavier(17)).one_per("layers", 4),
                 bias("bias_input", "3 * hidden", uniform(18, -0.1, 0.1)).one_per("layers", 4),
                 bias("bias_hidden", "3 * hidden", uniform(19, -0.1, 0.1)).one_per("layers", 4)},
      .outputs = {output("output", "flows, hidden", chained).with_gradient(3),
                  output("next_hidden", "layers, flows, hidden", chained).batch(1).with_gradient(4),
                  exact_output("guard_hits", "flows", Element::kInt32)},
      .gradient = {Tolerance::Kind::kGradient, {1e-4, 1e-6}, {5e-2, 1e-3}, "grad", {2e-5, 2e-6}, {1e-2, 1e-4}},
  };
}

// NaN, infinities, and values at and beyond the guard.
const std::vector<float> kAwkward = {std::numeric_limits<float>::quiet_NaN(),
                                     std::numeric_limits<float>::infinity(),
                                     -std::numeric_limits<float>::infinity(),
                                     10.0f,
                                     10.5f,
                                     -1e30f,
                                     -10.0f};

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  // Values met in training are below 1 in magnitude; the other distributions also test states beyond that.
  if (setting.input_case.distribution == "normal")
    inputs.set("hidden", draws::drawn("uniform", inputs["hidden"].sizes(), seed, 2));
  const std::int64_t hidden = setting.size("hidden");
  for (std::int64_t l = 0; l < setting.size("layers"); ++l)  // the update gate starts open (decision 20)
    inputs["bias_hidden_" + std::to_string(l)].narrow(0, hidden, hidden).add_(1.0);
  if (!setting.on("non_finite")) return;
  // Sparse in backward cases: saturated gates pass little gradient, and bf16 then leaves few of its digits.
  const std::int64_t apart = setting.backward() ? 4 : 1;
  plant(inputs["features"], 11 * apart, kAwkward);
  plant(inputs["energy"], 5 * apart, kAwkward);
  plant(inputs["hidden"], 13 * apart, kAwkward);
  if (!setting.backward()) return;
  // Guarded inputs are ten times the usual: gradients a tenth keep the weights' gradients of the usual magnitude.
  for (const char* name : {"grad_output", "grad_next_hidden"}) inputs[name].mul_(0.1);
}

// Forward, a flow: concatenation 1, guards of input, hidden, output and next hidden 8, joining the layers 1, guard hits
// 5; per layer two products and eleven pointwise operators (the specification's 9 + 3L counts those as one launch).
// Backward adds the tape's replay: of the forward (without the results' copies), and the sum of every parameter's
// gradients over the flows, one operator a parameter and flow but the first; three join the flows' inputs.
std::int64_t baseline_dispatches(const Setting& s) {
  const std::int64_t layers = s.size("layers"), flows = s.size("flows");
  if (flows == 0) return 0;
  return s.backward() ? flows * (54 + 48 * layers) + 3 - 4 * layers : flows * (15 + 13 * layers);
}

// Forward: hidden state in and out 2, the other two results 2. Backward: hidden state in. In bf16 every rounding of a
// product's operand is two conversions, replayed backwards.
std::int64_t baseline_copies(const Setting& s) {
  const std::int64_t roundings = s.dtype == Dtype::kBf16 ? (s.backward() ? 8 : 4) * s.size("layers") : 0;
  return s.size("flows") * ((s.backward() ? 1 : 4) + roundings);
}

// On the CPU the products are our own loops. On CUDA the hidden products of all layers at once and one product a layer;
// backward on CUDA one more for all layers' hidden state, weights each, and two a layer.
std::int64_t optimized_dispatches(const Setting& s) {
  const std::int64_t layers = s.size("layers");
  if (s.size("flows") == 0 || s.device.is_cpu()) return 0;
  return 1 + layers + (s.backward() ? 2 + 2 * layers : 0);
}

Cost cost(const Setting& s) {
  const auto [flows, hidden, layers, features] = real_sizes<4>(s, {"flows", "hidden", "layers", "features"});
  const double input = features + 1, weights = 3 * hidden * (input + (layers - 1) * hidden + layers * hidden);
  const double read = operand_bytes(s) * weights, biases = 6 * hidden * layers, state = flows * layers * hidden;
  // Forward: input, state and parameters read, the state written. Backward: besides, gradients in and out.
  if (!s.backward()) return {read + 4 * (flows * input + 2 * state + biases), 2 * weights * flows};
  return {read + 4 * (2 * flows * input + 3 * state + flows * hidden + weights + 2 * biases), 6 * weights * flows};
}

// A tensor core's error is one of its operands, which guards let be ten times as large as those of the class.
double operand_bound(const std::string& output, const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype != Dtype::kTf32 || setting.backward() || output == "guard_hits") return 1;
  constexpr double kUsual = 4, kGuard = 10;
  double largest = 0;
  for (const char* name : {"features", "energy", "hidden"})
    if (inputs[name].numel() > 0)
      largest = std::max(largest, inputs[name].nan_to_num(0).abs().clamp_max(kGuard).max().item<double>());
  return std::max(1.0, largest / kUsual);
}

std::string beyond_limits(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  if (setting.backward() || setting.size("flows") == 0) return "";
  const double next = outputs["next_hidden"].abs().max().item<double>();
  if (!(next <= 10.0)) return "next_hidden reaches " + std::to_string(next);
  const double before = inputs["hidden"].abs().max().item<double>();  // NaN if any is NaN: then no promise
  if (before <= 1.0 && !(next <= 1.0 + 1e-6)) return "|hidden| <= 1 but next_hidden reaches " + std::to_string(next);
  return "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.proof = {{"dispatches", "", baseline_dispatches, optimized_dispatches},
                {"copies", "", baseline_copies, nothing}};
  spec.cost = cost;
  spec.bound_factor = operand_bound;
  // The specification's 3 a layer; one layer takes as many as its guard, two products and gates.
  spec.most_launches = [](const Setting& s) { return std::max<std::int64_t>(3 * s.size("layers"), 4); };
  spec.invariants = {{"bounded_state", beyond_limits}};
  return spec;
}

}  // namespace twinbench::energy_flow::energy_carrier

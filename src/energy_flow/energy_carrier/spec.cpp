// energy_flow.energy_carrier (C07): the record of the gated recurrent unit that carries a flow's state from step to step.
#include "src/energy_flow/energy_carrier/shape.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "src/common/error.h"
#include "src/draws.h"
#include "src/spec_parts.h"
#include "src/tensor_checks.h"

namespace twinbench::energy_flow::energy_carrier {

using namespace draws;

std::string layer_name(const char* stem, std::int64_t layer) { return std::string(stem) + "_" + std::to_string(layer); }

CarrierShape checked_carrier_shape(const NamedTensors& inputs, const Setting& setting) {
  const at::ScalarType dtype = floating_type(setting.dtype);
  const at::Tensor& features = inputs["features"];
  const at::Tensor& hidden = inputs["hidden"];
  expect_rank(inputs, "features", 2);
  if (hidden.dim() != 3 || hidden.size(0) < 1 || hidden.size(2) < 1)
    throw Error(ErrorKind::kBadShape, "hidden", c10::str(hidden.sizes()), "expected [layers >= 1, flows, hidden >= 1]");
  const CarrierShape shape{features.size(0), features.size(1), hidden.size(2), hidden.size(0)};
  expect_tensor(inputs, "features", {shape.flows, shape.features}, dtype);
  expect_tensor(inputs, "energy", {shape.flows}, dtype);
  expect_tensor(inputs, "hidden", {shape.layers, shape.flows, shape.hidden}, dtype);
  for (std::int64_t l = 0; l < shape.layers; ++l) {
    const auto layer = [&](const char* stem) { return layer_name(stem, l); };
    const std::int64_t rows = 3 * shape.hidden;
    expect_tensor(inputs, layer("weight_input"), {rows, shape.input_width(l)}, dtype);
    expect_tensor(inputs, layer("weight_hidden"), {rows, shape.hidden}, dtype);
    expect_tensor(inputs, layer("bias_input"), {rows}, dtype);
    expect_tensor(inputs, layer("bias_hidden"), {rows}, dtype);
  }
  if (setting.input_case.pass == Pass::kBackward) {
    expect_tensor(inputs, "grad_output", {shape.flows, shape.hidden}, dtype);
    expect_tensor(inputs, "grad_next_hidden", {shape.layers, shape.flows, shape.hidden}, dtype);
  }
  return shape;
}

namespace {

Case carrier_case(const char* name, std::int64_t flows, std::int64_t features, std::int64_t hidden,
                  std::int64_t layers) {
  return sized_case(name, {{"flows", flows}, {"features", features}, {"hidden", hidden}, {"layers", layers}});
}

std::vector<Case> carrier_cases() {
  std::vector<Case> cases;
  const auto add = [&cases](Case c) -> Case& { return cases.emplace_back(std::move(c)); };
  add(carrier_case("tiny", 4, 3, 4, 2));
  add(carrier_case("one", 1, 64, 32, 2));
  add(carrier_case("empty", 0, 64, 32, 2)).degenerate = true;
  add(carrier_case("odd", 37, 13, 29, 3));
  add(carrier_case("unit", 512, 64, 32, 2)).timed = true;         // UNIT: batch 4, quota 128
  add(carrier_case("train", 256, 64, 512, 2)).timed = true;       // D0E widths
  add(carrier_case("train_deep", 128, 64, 512, 3)).timed = true;  // EXP widths
  add(carrier_case("zeros", 17, 64, 31, 2)).distribution = "zeros";
  add(carrier_case("heavy_tail", 61, 64, 47, 2)).distribution = "heavy_tail";
  add(carrier_case("adversarial", 67, 64, 33, 2)).distribution = "adversarial";
  add(carrier_case("nan_inputs", 33, 64, 32, 2)).options["non_finite"] = 1;
  for (Case c : {carrier_case("backward_tiny", 3, 3, 4, 2), carrier_case("backward_odd", 37, 13, 29, 2),
                 carrier_case("backward_train", 64, 64, 512, 2), carrier_case("backward_guarded", 19, 7, 16, 2),
                 carrier_case("backward_empty", 0, 13, 29, 2)}) {
    c.pass = Pass::kBackward;
    c.timed = c.name == "backward_train";
    c.degenerate = c.name == "backward_empty";
    if (c.name == "backward_guarded") c.options["non_finite"] = 1;
    add(c);
  }
  return cases;
}

// Plants NaN, infinities and values beyond the guard at fixed places of a contiguous tensor.
void plant_non_finite(at::Tensor& tensor, std::int64_t stride) {
  const float awkward[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(), 10.0f, 10.5f, -1e30f, -10.0f};
  float* data = tensor.mutable_data_ptr<float>();
  for (std::int64_t i = 0, k = 0; i < tensor.numel(); i += stride, ++k) data[i] = awkward[k % 7];
}

NamedTensors make_inputs(const Setting& setting, std::uint64_t seed) {
  const std::int64_t flows = setting.size("flows"), features = setting.size("features");
  const std::int64_t hidden = setting.size("hidden"), layers = setting.size("layers");
  const std::string& distribution = setting.input_case.distribution;
  at::Tensor o = drawn(distribution, {flows, features}, seed, 0);
  at::Tensor e = drawn(distribution, {flows}, seed, 1);
  // NamedTensors met in training are below 1 in magnitude; the other distributions also test states beyond that.
  at::Tensor h = drawn(distribution == "normal" ? "uniform" : distribution, {layers, flows, hidden}, seed, 2);
  if (setting.option_or("non_finite", 0) != 0) {
    // Sparse in backward cases: saturated gates pass little gradient, and bf16 then leaves few of its digits.
    const std::int64_t apart = setting.input_case.pass == Pass::kBackward ? 4 : 1;
    plant_non_finite(o, 11 * apart);
    plant_non_finite(e, 5 * apart);
    plant_non_finite(h, 13 * apart);
  }
  NamedTensors inputs = {{"features", o}, {"energy", e}, {"hidden", h}};
  for (std::int64_t l = 0; l < layers; ++l) {
    const auto number = [l](int i) { return static_cast<std::uint32_t>(16 + 4 * l + i); };
    const std::int64_t width = l == 0 ? features + 1 : hidden;
    inputs.set(layer_name("weight_input", l), xavier_uniform(3 * hidden, width, seed, number(0)));
    inputs.set(layer_name("weight_hidden", l), xavier_uniform(3 * hidden, hidden, seed, number(1)));
    inputs.set(layer_name("bias_input", l), uniform({3 * hidden}, seed, number(2), -0.1, 0.1));
    at::Tensor bias = uniform({3 * hidden}, seed, number(3), -0.1, 0.1);
    bias.narrow(0, hidden, hidden).add_(1.0);  // the update gate starts open (specification, decision 20)
    inputs.set(layer_name("bias_hidden", l), bias);
  }
  if (setting.input_case.pass == Pass::kBackward) {
    // Guarded inputs are ten times the usual: gradients a tenth keep the weights' gradients of the usual magnitude.
    const double scale = setting.option_or("non_finite", 0) != 0 ? 0.1 : 1.0;
    inputs.set("grad_output", drawn("normal", {flows, hidden}, seed, 3, scale));
    inputs.set("grad_next_hidden", drawn("normal", {layers, flows, hidden}, seed, 4, scale));
  }
  return inputs;
}

// Forward, a flow: concatenation 1, guards of input, hidden, output and next hidden 8, joining the layers 1, guard hits 5;
// per layer two products and eleven pointwise operators (the specification's 9 + 3L counts those as one launch). Backward
// adds the tape's replay: of the forward (without the results' copies), and the sum of every parameter's gradients over
// the flows, one operator a parameter and flow but the first; three join the flows' inputs.
std::int64_t naive_dispatches(const Setting& s) {
  const std::int64_t layers = s.size("layers"), flows = s.size("flows");
  if (flows == 0) return 0;
  if (s.input_case.pass == Pass::kForward) return flows * (15 + 13 * layers);
  return flows * (54 + 48 * layers) + 3 - 4 * layers;
}

// Forward: hidden state in and out 2, the other two results 2. Backward: hidden state in. In bf16 every rounding of a
// product's operand is two conversions, replayed backwards.
std::int64_t naive_copies(const Setting& s) {
  const bool backward = s.input_case.pass == Pass::kBackward;
  const std::int64_t roundings = s.dtype == Dtype::kBf16 ? (backward ? 8 : 4) * s.size("layers") : 0;
  return s.size("flows") * ((backward ? 1 : 4) + roundings);
}

// On the CPU three products a layer, and five more backwards. On CUDA the hidden products of all layers at once and one
// product a layer; backward on CUDA one more for all layers' hidden state, weights each, and two a layer.
std::int64_t optimized_dispatches(const Setting& s) {
  const std::int64_t layers = s.size("layers");
  if (s.size("flows") == 0) return 0;
  const bool backward = s.input_case.pass == Pass::kBackward;
  if (s.device.is_cuda()) return 1 + layers + (backward ? 2 + 2 * layers : 0);
  return (backward ? 8 : 3) * layers;
}

Cost cost(const Setting& s) {
  const double flows = static_cast<double>(s.size("flows")), hidden = static_cast<double>(s.size("hidden"));
  const double layers = static_cast<double>(s.size("layers")), input = static_cast<double>(s.size("features")) + 1;
  const double weights = 3 * hidden * (input + (layers - 1) * hidden + layers * hidden);
  const double state = flows * layers * hidden;
  const bool backward = s.input_case.pass == Pass::kBackward;
  // Forward: read input, state and weights, write the state. Backward: also gradients in and out, all three products.
  const double floats = (flows * input + 2 * state + weights + 6 * hidden * layers) * (backward ? 2.5 : 1.0);
  return {4 * floats, 2 * weights * flows * (backward ? 3 : 1)};
}

std::string beyond_limits(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  if (setting.input_case.pass == Pass::kBackward || setting.size("flows") == 0) return "";
  const double next = outputs["next_hidden"].abs().max().item<double>();
  if (!(next <= kCarrierGuardLimit)) return "next_hidden reaches " + std::to_string(next);
  const double before = inputs["hidden"].abs().max().item<double>();  // NaN if any is NaN: then no promise
  if (before <= 1.0 && !(next <= 1.0 + 1e-6)) return "|hidden| <= 1 but next_hidden reaches " + std::to_string(next);
  return "";
}

}  // namespace

NamedTensors toy_carrier_weights() {
  NamedTensors weights;
  for (std::int64_t l = 0; l < 2; ++l) {
    weights.set(layer_name("weight_input", l), toy_weight(12, 4, 1 + l));
    weights.set(layer_name("weight_hidden", l), toy_weight(12, 4, 4 + l));
    weights.set(layer_name("bias_input", l), toy_bias(12, 1 + l));
    weights.set(layer_name("bias_hidden", l), toy_bias(12, 3 + l));
  }
  return weights;
}

namespace {

// One flow of the toy model with the given features, energy and hidden state, and the hidden state expected after it.
Golden toy_golden(const char* name, std::initializer_list<double> features, double energy,
                  std::initializer_list<double> hidden, std::initializer_list<double> next) {
  Golden golden;
  golden.name = name;
  golden.setting.input_case = carrier_case(name, 1, 3, 4, 2);
  golden.inputs = {{"features", literal({1, 3}, features)}, {"energy", literal({1}, {energy})},
                   {"hidden", literal({2, 1, 4}, hidden)}};
  for (const auto& [weight, tensor] : toy_carrier_weights()) golden.inputs.set(weight, tensor);
  const at::Tensor expected = literal({2, 1, 4}, next);
  golden.expected = {{"next_hidden", expected}, {"output", expected.select(0, 1)}};
  return golden;
}

// Specification C17: one channel, one input, weights in the order reset, update, candidate.
Golden scalar_gradient_golden() {
  Golden golden;
  golden.name = "scalar_cell_gradient";
  golden.setting.input_case = carrier_case("scalar_cell_gradient", 1, 0, 1, 1);
  golden.setting.input_case.pass = Pass::kBackward;
  golden.inputs = {{"features", at::empty({1, 0})},
                   {"energy", literal({1}, {0.7})},
                   {"hidden", literal({1, 1, 1}, {-0.4})},
                   {"weight_input_0", literal({3, 1}, {0.5, 0.2, 1.1})},
                   {"weight_hidden_0", literal({3, 1}, {-0.3, 0.8, 0.6})},
                   {"bias_input_0", at::zeros({3})},
                   {"bias_hidden_0", at::zeros({3})},
                   {"grad_output", literal({1, 1}, {1.0})},
                   {"grad_next_hidden", literal({1, 1, 1}, {0.0})}};
  golden.expected = {{"grad_energy", literal({1}, {0.35825142})},
                     {"grad_hidden", literal({1, 1, 1}, {0.41227910})},
                     {"grad_weight_input_0", literal({3, 1}, {-0.01504689, -0.16538501, 0.26488767})},
                     {"grad_weight_hidden_0", literal({3, 1}, {0.00859822, 0.09450572, -0.09314718})}};
  return golden;
}

std::vector<std::function<Golden()>> carrier_goldens() {
  return {
      [] {
        return toy_golden("fresh_flow", {0.001032, -0.718336, 0.630416}, 0.8, {0, 0, 0, 0, 0, 0, 0, 0},
                          {-0.083318, 0.262801, -0.223501, 0.264698, -0.171590, -0.003265, 0.090253, -0.121725});
      },
      [] {
        return toy_golden("carried_flow", {0.001032, -0.718336, 0.630416}, 0.8,
                          {0.1, -0.2, 0.3, -0.4, 0.5, 0, -0.5, 0.25},
                          {-0.112773, 0.153189, 0.022424, 0.210357, 0.145487, -0.069684, -0.115281, 0.118930});
      },
      [] {
        return toy_golden("whole_step_flow_1", {-0.03574158, -0.77943137, 0.71016033}, 0.94287429,
                          {0, 0, 0, 0, 0, 0, 0, 0},
                          {-0.11139262, 0.27864318, -0.23567203, 0.33064164, -0.18377457, -0.00271350, 0.08911823,
                           -0.13310266});
      },
      [] { return scalar_gradient_golden(); },
  };
}

std::vector<OutputSpec> carrier_gradients() {
  Tolerance tolerance{Tolerance::Kind::kGradient, {1e-4, 1e-6}, {5e-2, 1e-3}, "grad"};
  std::vector<OutputSpec> list = {
      {"grad_features", tolerance, 0}, {"grad_energy", tolerance, 0}, {"grad_hidden", tolerance, 1}};
  for (std::int64_t l = 0; l < 2; ++l)
    for (const char* stem : {"grad_weight_input", "grad_weight_hidden", "grad_bias_input", "grad_bias_hidden"})
      list.push_back({layer_name(stem, l), tolerance, std::nullopt});
  return list;
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.pipeline = "energy_flow";
  spec.name = "energy_carrier";
  spec.summary = "Gated recurrent unit of every active flow: guards, input and hidden products, gates, next state.";
  spec.source = "energy_flow C07, C17";
  spec.sin = "one flow at a time: thousands of matrix-vector launches, hidden state copied out and in";
  spec.dtypes = {Dtype::kFp32, Dtype::kBf16};  // bf16 is gru_force_fp32 = 0
  spec.cases = carrier_cases();
  spec.make_inputs = make_inputs;
  // Layers chain: in bf16 a last-bit difference flips the rounding of the next layer's operand.
  const Tolerance chained{Tolerance::Kind::kBound, {2e-5, 5e-6}, {2e-2, 5e-3}, "op per layer"};
  const Tolerance exact{Tolerance::Kind::kExact, {0, 0}, {0, 0}, "exact"};
  spec.outputs = {{"output", chained, 0}, {"next_hidden", chained, 1}, {"guard_hits", exact, 0}};
  spec.gradients = carrier_gradients();
  spec.batched_inputs = {{"features", 0}, {"energy", 0}, {"hidden", 1}, {"grad_output", 0}, {"grad_next_hidden", 1}};
  spec.batch_size = "flows";
  spec.proof = {{"dispatches", "flows * (15 + 13 * layers); backward flows * (54 + 48 * layers) + 3 - 4 * layers",
                 naive_dispatches, optimized_dispatches},
                {"copies", "flows * 4 (hidden state in and out, two results), in bf16 + flows * 4 * layers; backward flows, "
                 "in bf16 + flows * 8 * layers", naive_copies, [](const Setting&) { return std::int64_t{0}; }}};
  spec.cost = cost;
  spec.claims = {
      {"D0", "50 steps of carrier launches dominate the 30 s forward of a batch", "30 s", std::nullopt,
       "ok as a launch-overhead model"},
      {"D0", "vectorising the flows", "5x", 5.0, "unproven: 1.43x was measured with host reads left in"},
      {"D1", "combine the carrier's projections", "1.2x", 1.2, "unproven"},
      {"D3", "the GRU's hidden range must be verified to stay bounded", "", std::nullopt,
       "vacuous: a state that starts within 1 stays within 1; gradients and NaN are what to test"},
      {"D0", "carrier has 3 M parameters", "3 M", std::nullopt, "wrong in total: 2.47 M in the GRU, 2.63 M with heads"},
  };
  spec.goldens = carrier_goldens();
  spec.invariants = {{"bounded_state", beyond_limits}};
  return spec;
}

}  // namespace twinbench::energy_flow::energy_carrier

// energy_flow.carrier_heads (C08): the record of the heads that turn a carried state into energy, movement and spawns.
#include "src/energy_flow/carrier_heads/shape.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <limits>

#include "src/common/error.h"
#include "src/draws.h"
#include "src/spec_parts.h"
#include "src/tensor_checks.h"

namespace twinbench::energy_flow::carrier_heads {

using namespace draws;
namespace {

void expect_head(const NamedTensors& inputs, const std::string& name, std::int64_t in, std::int64_t width, std::int64_t out,
                 at::ScalarType dtype) {
  expect_tensor(inputs, name + "_hidden_weight", {width, in}, dtype);
  expect_tensor(inputs, name + "_hidden_bias", {width}, dtype);
  expect_tensor(inputs, name + "_out_weight", {out, width}, dtype);
  expect_tensor(inputs, name + "_out_bias", {out}, dtype);
}

void require(bool holds, const std::string& option, double value, const std::string& remedy) {
  if (!holds) throw Error(ErrorKind::kOutOfRange, option, std::to_string(value), remedy);
}

}  // namespace

HeadsShape checked_heads_shape(const NamedTensors& inputs, const Setting& setting) {
  const at::ScalarType dtype = floating_type(setting.dtype);
  const at::Tensor& carried = inputs["carried"];
  if (carried.dim() != 2 || carried.size(1) < 1)
    throw Error(ErrorKind::kBadShape, "carried", c10::str(carried.sizes()), "expected [flows, hidden >= 1]");
  const HeadsShape shape{carried.size(0), carried.size(1), inputs["energy_hidden_bias"].numel(),
                         inputs["displacement_hidden_bias"].numel()};
  expect_tensor(inputs, "carried", {shape.flows, shape.hidden}, dtype);
  expect_tensor(inputs, "position", {shape.flows, 3}, dtype);
  expect_tensor(inputs, "sample_key", {shape.flows}, at::kLong);
  expect_tensor(inputs, "local_id", {shape.flows}, at::kLong);
  expect_head(inputs, "energy", shape.hidden, shape.energy_width, 1, dtype);
  expect_head(inputs, "displacement", shape.hidden, shape.head_width, 3, dtype);
  expect_head(inputs, "gate", shape.hidden, shape.head_width, 1, dtype);
  expect_tensor(inputs, "child_weight", {1, shape.hidden}, dtype);
  expect_tensor(inputs, "child_bias", {1}, dtype);
  if (setting.input_case.pass == Pass::kBackward) {
    for (const char* name : {"grad_energy", "grad_child_energy"}) expect_tensor(inputs, name, {shape.flows}, dtype);
    for (const char* name : {"grad_displacement", "grad_delta", "grad_raw"})
      expect_tensor(inputs, name, {shape.flows, 3}, dtype);
  }
  return shape;
}

HeadsOptions checked_heads_options(const Setting& setting) {
  HeadsOptions o;
  o.gate = setting.option_or("gate", 0) != 0;
  o.noise = setting.option_or("noise", 0);
  o.noise_on_z = setting.option_or("noise_on_z", 1) != 0;
  const double seed = setting.option_or("seed", 1234), attempt = setting.option_or("attempt", 0);
  const double step = setting.option_or("step", 0), most = setting.option_or("most_spawned", 3);
  o.scale = setting.option_or("scale", 1);
  o.smallest_scale = setting.option_or("smallest_scale", 1);
  const double global_step = setting.option_or("global_step", 0);
  o.movement_threshold = setting.option_or("movement_threshold", 0.15);
  o.gate_threshold = setting.option_or("gate_threshold", 0.6);
  require(o.noise >= 0 && std::isfinite(o.noise), "noise", o.noise, "give a standard deviation of 0 or more");
  require(seed >= 0 && seed < 0x1p53, "seed", seed, "give 0 <= seed < 2^53");
  require(attempt >= 0 && attempt < 0x1p32, "attempt", attempt, "give 0 <= attempt < 2^32");
  require(step >= 0 && step < 65536, "step", step, "give 0 <= step < 65536 (16 bits of the noise's counter)");
  require(most >= 0 && most <= 1024, "most_spawned", most, "give 0 to 1024 children");
  require(std::isfinite(o.scale), "scale", o.scale, "give a finite displacement scale");
  require(global_step >= 0 && global_step < 0x1p53, "global_step", global_step, "give 0 or more");
  require(o.movement_threshold > 0, "movement_threshold", o.movement_threshold, "give a length above 0");
  require(o.gate_threshold >= 0 && o.gate_threshold < 1, "gate_threshold", o.gate_threshold, "give 0 <= tau < 1");
  o.seed = static_cast<std::uint64_t>(seed);
  o.attempt = static_cast<std::uint32_t>(attempt);
  o.step = static_cast<std::uint32_t>(step);
  o.global_step = static_cast<std::int64_t>(global_step);
  o.most_spawned = static_cast<int>(most);
  return o;
}

namespace {

Case heads_case(const char* name, std::int64_t flows, std::int64_t hidden, std::int64_t energy_width,
                std::int64_t head_width, Options options = {}) {
  return sized_case(name, {{"flows", flows}, {"hidden", hidden}, {"energy_width", energy_width}, {"head_width", head_width}}, std::move(options));
}

std::vector<Case> heads_cases() {
  std::vector<Case> cases = {
      heads_case("tiny", 4, 4, 2, 4),
      heads_case("one", 1, 32, 16, 64, {{"noise", 0.05}}),
      heads_case("empty", 0, 32, 16, 64),
      heads_case("odd", 37, 29, 15, 61, {{"noise", 0.05}, {"step", 3}, {"attempt", 7}}),
      heads_case("odd_gate", 37, 29, 15, 61, {{"gate", 1}, {"noise", 0.05}, {"gate_threshold", 0.45}}),
      heads_case("unit", 512, 32, 16, 64, {{"noise", 0.05}, {"most_spawned", 1}}),
      heads_case("train", 512, 512, 256, 64, {{"noise", 0.05}, {"movement_threshold", 0.1}}),
      heads_case("train_gate", 512, 512, 256, 64, {{"noise", 0.05}, {"gate", 1}}),
      heads_case("noise_off", 67, 33, 17, 64),
      heads_case("noise_flat", 67, 33, 17, 64, {{"noise", 0.5}, {"noise_on_z", 0}}),
      heads_case("decayed_scale", 31, 32, 16, 64, {{"scale", 4}, {"global_step", 135}, {"noise", 0.05}}),
      heads_case("clamp_boundary", 65, 32, 16, 64, {{"clamp_boundary", 1}}),
      heads_case("heavy_tail", 61, 47, 23, 64, {{"scale", 2}}),
      heads_case("adversarial", 67, 33, 16, 64, {{"noise", 0.05}}),
      heads_case("nan_inputs", 33, 32, 16, 64, {{"non_finite", 1}, {"noise", 0.05}}),
      heads_case("backward_tiny", 3, 4, 2, 4, {{"gate", 1}}),
      heads_case("backward_odd", 37, 29, 15, 61, {{"gate", 1}, {"scale", 2}, {"noise", 0.05}, {"gate_threshold", 0.45}}),
      heads_case("backward_movement", 37, 29, 15, 61, {{"scale", 2}, {"noise", 0.05}}),
      heads_case("backward_boundary", 19, 16, 8, 16, {{"not_differentiable", 1}, {"clamp_boundary", 1}}),
      heads_case("backward_train", 256, 512, 256, 64, {{"noise", 0.05}}),
      heads_case("backward_empty", 0, 29, 15, 61, {{"gate", 1}}),
  };
  for (Case& c : cases) {
    if (c.name.starts_with("backward")) c.pass = Pass::kBackward;
    c.degenerate = c.sizes["flows"] == 0;
    c.timed = c.name == "unit" || c.name == "train" || c.name == "train_gate" || c.name == "backward_train";
    if (c.name == "heavy_tail" || c.name == "adversarial") c.distribution = c.name;
  }
  return cases;
}

// Displacements of exactly 0.5, -0.5 and the float above 0.5, whatever the state: the clamp passes gradient up to and at
// its boundary, and none beyond.
void pin_to_clamp_boundary(NamedTensors& inputs) {
  const float above = std::nextafter(0.5f, 1.0f);
  inputs.set("displacement_out_weight", at::zeros_like(inputs["displacement_out_weight"]));
  inputs.set("displacement_out_bias", literal({3}, {0.5, -0.5, above}));
}

// Displacements well inside the clamp along x and z and well beyond it along y. A gradient that flips at the clamp would
// change every weight's gradient, and those belong to no flow that could be set aside.
void keep_from_clamp_boundary(NamedTensors& inputs) {
  inputs.set("displacement_out_weight", inputs["displacement_out_weight"].mul(0.1));
  inputs.set("displacement_out_bias", literal({3}, {0.02, 1.2, -0.05}));
}

NamedTensors make_inputs(const Setting& setting, std::uint64_t seed) {
  const std::int64_t flows = setting.size("flows"), hidden = setting.size("hidden");
  const std::int64_t energy_width = setting.size("energy_width"), width = setting.size("head_width");
  const std::string& distribution = setting.input_case.distribution;
  at::Tensor carried = drawn(distribution, {flows, hidden}, seed, 0, 0.5).clamp_(-10.0, 10.0);  // the carrier's guard
  if (setting.option_or("non_finite", 0) != 0) {
    float* data = carried.mutable_data_ptr<float>();
    for (std::int64_t f = 0; f < flows; f += 3) data[f * hidden + f % hidden] = std::numeric_limits<float>::quiet_NaN();
  }
  NamedTensors inputs = {{"carried", carried}, {"position", drawn("uniform", {flows, 3}, seed, 1)}};
  at::Tensor sample = at::empty({flows}, at::kLong), local = at::empty({flows}, at::kLong);
  for (std::int64_t f = 0; f < flows; ++f) {  // four samples' flows, as a batch holds them
    sample.mutable_data_ptr<std::int64_t>()[f] = 100 + f * 4 / flows;
    local.mutable_data_ptr<std::int64_t>()[f] = f;
  }
  inputs.set("sample_key", sample);
  inputs.set("local_id", local);
  std::uint32_t number = 16;
  const auto head = [&](const std::string& name, std::int64_t wide, std::int64_t out) {
    inputs.set(name + "_hidden_weight", xavier_uniform(wide, hidden, seed, number++));
    inputs.set(name + "_hidden_bias", uniform({wide}, seed, number++, -0.1, 0.1));
    inputs.set(name + "_out_weight", xavier_uniform(out, wide, seed, number++));
    inputs.set(name + "_out_bias", uniform({out}, seed, number++, -0.1, 0.1));
  };
  head("energy", energy_width, 1);
  head("displacement", width, 3);
  head("gate", width, 1);
  inputs.set("child_weight", xavier_uniform(1, hidden, seed, number++));
  inputs.set("child_bias", uniform({1}, seed, number++, -0.1, 0.1));
  // Gates over the whole of 0 .. 1, not crowded about one half: few lie within a decision margin.
  inputs.set("gate_out_weight", inputs["gate_out_weight"].mul(6.0));
  const bool backward = setting.input_case.pass == Pass::kBackward, pinned = setting.option_or("clamp_boundary", 0) != 0;
  if (pinned) pin_to_clamp_boundary(inputs);
  if (backward && !pinned) keep_from_clamp_boundary(inputs);
  if (backward) {
    std::uint32_t grad = 8;
    for (const char* name : {"grad_energy", "grad_child_energy"}) inputs.set(name, drawn("normal", {flows}, seed, grad++));
    for (const char* name : {"grad_displacement", "grad_delta", "grad_raw"})
      inputs.set(name, drawn("normal", {flows, 3}, seed, grad++));
  }
  return inputs;
}

bool gate_mode(const Setting& s) { return s.option_or("gate", 0) != 0; }
bool noisy(const Setting& s) { return s.option_or("noise", 0) != 0; }

// Forward, a flow: energy 5 (two products, GELU, tanh, NaN to zero), displacement 5 (two products, GELU, scale, clamp),
// raw 1, and either the move's length 1 or the gate 4 and child energy 3; noise is added to raw, and in movement mode to
// the move as well. Backward adds the tape's replay: 38 or 45 operators a flow, every parameter's gradient of each flow
// but the first added to the sum (in those), and the joining of two gradients.
std::int64_t naive_dispatches(const Setting& s) {
  const std::int64_t flows = s.size("flows"), noise = noisy(s) ? (gate_mode(s) ? 1 : 2) : 0;
  const std::int64_t forward = flows * ((gate_mode(s) ? 18 : 12) + noise);
  if (s.input_case.pass == Pass::kForward || flows == 0) return forward;
  return forward + (gate_mode(s) ? flows * 45 - 8 : flows * 38 - 6);
}

// Forward: one product on either device; the finishing pass is no operator. Backward: four products more.
std::int64_t optimized_dispatches(const Setting& s) {
  if (s.size("flows") == 0) return 0;
  return s.input_case.pass == Pass::kBackward ? 5 : 1;
}

Cost cost(const Setting& s) {
  const double flows = static_cast<double>(s.size("flows")), hidden = static_cast<double>(s.size("hidden"));
  const double energy_width = static_cast<double>(s.size("energy_width"));
  const double width = static_cast<double>(s.size("head_width")), gate = gate_mode(s) ? 1 : 0;
  const double first = energy_width + width * (1 + gate) + gate, second = energy_width + width * (3 + gate);
  const bool backward = s.input_case.pass == Pass::kBackward;
  const double weights = first * hidden + second;
  const double floats = (flows * (hidden + 3) + weights) * (backward ? 2 : 1) + flows * 13 + flows * 4;
  return {4 * floats, 2 * weights * flows * (backward ? 3 : 1)};
}

// Children never exceed the maximum; energies and displacements never leave their ranges.
std::string out_of_range(const NamedTensors&, const NamedTensors& outputs, const Setting& setting) {
  if (setting.input_case.pass == Pass::kBackward || setting.size("flows") == 0) return "";
  if (!(outputs["energy"].abs().max().item<double>() <= 1)) return "an energy is beyond 1 or NaN";
  if ((outputs["delta"].abs() > 0.5).any().item<bool>()) return "a displacement is beyond its clamp";
  const at::Tensor& count = outputs["spawn_count"];
  if (count.min().item<int>() < 0 || count.max().item<int>() > setting.option_or("most_spawned", 3))
    return "a spawn count is outside 0 .. most_spawned";
  return "";
}

// ---- worked examples -----------------------------------------------------------------------------------------------

NamedTensors toy_head_weights() {
  return {{"energy_hidden_weight", toy_weight(2, 4, 2)},       {"energy_hidden_bias", toy_bias(2, 2)},
          {"energy_out_weight", toy_weight(1, 2, 5)},          {"energy_out_bias", toy_bias(1, 1)},
          {"displacement_hidden_weight", toy_weight(4, 4, 6)}, {"displacement_hidden_bias", toy_bias(4, 4)},
          {"displacement_out_weight", toy_weight(3, 4, 9)},    {"displacement_out_bias", toy_bias(3, 5)},
          {"gate_hidden_weight", toy_weight(4, 4, 3)},         {"gate_hidden_bias", toy_bias(4, 6)},
          {"gate_out_weight", toy_weight(1, 4, 8)},            {"gate_out_bias", toy_bias(1, 2)},
          {"child_weight", toy_weight(1, 4, 7)},               {"child_bias", toy_bias(1, 4)}};
}

at::Tensor rows(const std::vector<std::vector<double>>& values) {
  const auto columns = values.empty() ? 0 : static_cast<std::int64_t>(values[0].size());
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size()), columns});
  float* data = tensor.mutable_data_ptr<float>();
  for (const auto& row : values)
    for (const double value : row) *data++ = static_cast<float>(value);
  return tensor;
}
at::Tensor column(const std::vector<double>& values) { return rows({values}).select(0, 0).clone(); }
at::Tensor integers(const std::vector<double>& values, at::ScalarType dtype) { return column(values).to(dtype); }

struct GoldenFlow {
  std::vector<double> carried, position = {0, 0, 0};
  double sample = 0, local_id = 0;
};

Golden heads_golden(const char* name, Options options, const NamedTensors& weights, const std::vector<GoldenFlow>& flows) {
  std::vector<std::vector<double>> carried, position;
  std::vector<double> sample, local;
  for (const auto& flow : flows) {
    carried.push_back(flow.carried), position.push_back(flow.position);
    sample.push_back(flow.sample), local.push_back(flow.local_id);
  }
  Golden golden;
  golden.name = name;
  golden.setting.input_case = heads_case(name, static_cast<std::int64_t>(flows.size()), 4, 2, 4, std::move(options));
  golden.inputs = {{"carried", rows(carried)}, {"position", rows(position)},
                   {"sample_key", integers(sample, at::kLong)}, {"local_id", integers(local, at::kLong)}};
  for (const auto& [weight, tensor] : weights) golden.inputs.set(weight, tensor);
  return golden;
}

// Two states of the carrier's worked example.
Golden toy_states(bool gate) {
  Golden golden = heads_golden(gate ? "toy_states_gate" : "toy_states", {{"gate", gate ? 1.0 : 0.0}},
                               toy_head_weights(),
                               {{{-0.171590, -0.003265, 0.090253, -0.121725}}, {{0.145487, -0.069684, -0.115281, 0.118930}}});
  const at::Tensor d = rows({{0.100739, 0.056324, -0.105648}, {0.160639, -0.029282, -0.079013}});
  golden.expected = {{"energy", column({-0.129431, -0.103819})}, {"displacement", d}, {"delta", d}, {"raw", d}};
  if (gate) {  // neither gate passes 0.6, so each child energy is divided by 1
    golden.expected.set("spawn_measure", column({0.505928, 0.473422}));
    golden.expected.set("child_energy", column({-0.013026, 0.078677}));
    golden.expected.set("spawn_count", integers({0, 0}, at::kInt));
  }
  return golden;
}

const std::vector<double> kFlow1 = {-0.18377457, -0.00271350, 0.08911823, -0.13310266};

// Specification 7, runs A and B: flow 1 at its first step, lambda 4, without and with noise.
Golden whole_step_flow_1() {
  Golden golden = heads_golden("whole_step_flow_1", {{"scale", 4}}, toy_head_weights(), {{kFlow1, {1, -1, 0}}});
  golden.expected = {{"energy", column({-0.13007592})},
                     {"displacement", rows({{0.09934691, 0.05863123, -0.10587510}})},
                     {"delta", rows({{0.39738763, 0.23452493, -0.42350042}})},
                     {"raw", rows({{1.39738763, -0.76547507, -0.42350042}})}};
  return golden;
}
Golden noisy_flow_1() {
  Golden golden = heads_golden("noisy_flow_1", {{"scale", 4}, {"noise", 0.05}}, toy_head_weights(),
                               {{kFlow1, {1, -1, 0}, 0, 1}});
  golden.expected = {{"raw", rows({{1.496938, -0.768368, -0.391603}})}};
  return golden;
}

// Weights that ignore the state, with this displacement.
NamedTensors constant_weights(const std::vector<double>& displacement) {
  NamedTensors weights;
  for (const auto& [name, tensor] : toy_head_weights()) weights.set(name, at::zeros_like(tensor));
  weights.set("displacement_out_bias", column(displacement));
  return weights;
}

// Specification 0.6: no displacement, noise 1 and the origin as position leave the three normals in raw.
Golden noise_table(const char* name, double attempt, double step, const std::vector<std::array<double, 2>>& keys,
                   const std::vector<std::vector<double>>& normals) {
  std::vector<GoldenFlow> flows;
  for (const auto& [sample, local_id] : keys) flows.push_back({{0, 0, 0, 0}, {0, 0, 0}, sample, local_id});
  Golden golden = heads_golden(name, {{"noise", 1}, {"attempt", attempt}, {"step", step}}, constant_weights({0, 0, 0}), flows);
  golden.expected = {{"raw", rows(normals)}};
  return golden;
}

// Flows whose displacement along x, or whose gate's logit, is the given value: the first hidden unit carries 8 + value,
// where GELU is the identity, and the output bias takes the 8 away.
Golden direct_counts(const char* name, Options options, const std::vector<double>& values, const std::vector<double>& counts) {
  NamedTensors weights = constant_weights({-8, 0, 0});
  for (const char* weight : {"displacement_hidden_weight", "displacement_out_weight", "gate_hidden_weight", "gate_out_weight"}) {
    at::Tensor tensor = weights[weight];
    tensor.mutable_data_ptr<float>()[0] = 1.0f;
  }
  weights.set("gate_out_bias", column({-8}));
  std::vector<GoldenFlow> flows;
  for (const double value : values) flows.push_back({{8 + value, 0, 0, 0}});
  Golden golden = heads_golden(name, std::move(options), weights, flows);
  golden.expected = {{"spawn_count", integers(counts, at::kInt)}};
  return golden;
}

// A displacement beyond the clamp on every axis has the largest length there is, sqrt(3)/2.
Golden longest_move(const char* name, double threshold, double most, double count) {
  Golden golden = heads_golden(name, {{"movement_threshold", threshold}, {"most_spawned", most}},
                               constant_weights({0.5, -0.75, 2}), {{{0, 0, 0, 0}}});
  golden.expected = {{"delta", rows({{0.5, -0.5, 0.5}})}, {"spawn_measure", column({0.8660254})},
                     {"spawn_count", integers({count}, at::kInt)}};
  return golden;
}

double logit(double q) { return std::log(q / (1 - q)); }

std::vector<std::function<Golden()>> heads_goldens() {
  return {
      [] { return toy_states(false); },
      [] { return toy_states(true); },
      [] { return whole_step_flow_1(); },
      [] { return noisy_flow_1(); },
      [] {
        return noise_table("noise_first_step", 0, 0, {{0, 0}, {0, 1}},
                           {{0.0783465, 0.1982568, -0.0405787}, {1.9910079, -0.0578598, 0.6379464}});
      },
      [] { return noise_table("noise_second_step", 0, 1, {{0, 0}}, {{0.4322455, 0.9472424, 2.1120083}}); },
      [] { return noise_table("noise_all_keys", 7, 5, {{3, 42}}, {{-0.7395252, -0.0247834, 0.2350090}}); },
      [] {
        return direct_counts("movement_counts", {{"movement_threshold", 0.15}, {"most_spawned", 1}}, {0.14, 0.29, 0.31},
                             {0, 0, 1});
      },
      [] { return longest_move("longest_move_debug", 0.15, 3, 3); },
      [] { return longest_move("longest_move_experiment", 0.5, 1, 0); },
      [] { return longest_move("longest_move_default", 0.1, 3, 3); },
      [] {
        return direct_counts("gate_counts", {{"gate", 1}}, {logit(0.59), logit(0.61), logit(0.74), logit(0.87), 30},
                             {0, 1, 2, 3, 3});
      },
  };
}

std::vector<OutputSpec> heads_gradients() {
  const Tolerance tolerance{Tolerance::Kind::kGradient, {1e-4, 1e-6}, {5e-2, 1e-3}, "grad"};
  std::vector<OutputSpec> list = {{"grad_carried", tolerance, 0}, {"grad_position", tolerance, 0}};
  for (const char* head : {"energy", "displacement"})
    for (const char* part : {"_hidden_weight", "_hidden_bias", "_out_weight", "_out_bias"})
      list.push_back({"grad_" + std::string(head) + part, tolerance, std::nullopt});
  list.push_back({"grad_child_weight", tolerance, std::nullopt});
  list.push_back({"grad_child_bias", tolerance, std::nullopt});
  return list;
}

// Flows whose spawn count, or, for gradients, whose clamp lies so close to its threshold that rounding may decide it
// (energy-flow specification 0.5: margins of 1e-5, in bf16 1e-2).
at::Tensor within_margin(const NamedTensors& outputs, const Setting& setting) {
  const HeadsOptions o = checked_heads_options(setting);
  const double margin = setting.dtype == Dtype::kBf16 ? 1e-2 : 1e-5;
  const at::Tensor measure = outputs["spawn_measure"];
  at::Tensor near = at::zeros(measure.sizes(), at::kBool);
  for (int i = 0; i < o.most_spawned; ++i) {
    const double threshold = o.gate ? o.gate_threshold + i * (1 - o.gate_threshold) / o.most_spawned : (i + 2) * o.movement_threshold;
    const double unit = o.gate ? 1 : o.movement_threshold;  // the movement margin is one of the ratio, not of the length
    near = near.logical_or(measure.sub(threshold).abs().lt(margin * unit));
  }
  // Displacements pinned to the boundary are exact in every mode: nothing can decide them otherwise.
  if (setting.input_case.pass == Pass::kBackward && setting.option_or("clamp_boundary", 0) == 0) {
    const double decays = std::floor(static_cast<double>(o.global_step - kWarmUp) / kInterval);
    const double scale = o.global_step < kWarmUp ? o.scale : std::max(o.smallest_scale, o.scale * std::pow(kDecay, decays));
    near = near.logical_or(outputs["displacement"].mul(scale).abs().sub(0.5).abs().lt(margin).any(1));
  }
  return near;
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.pipeline = "energy_flow";
  spec.name = "carrier_heads";
  spec.summary = "Energy, displacement and spawn heads of every flow, exploration noise, and the number of children.";
  spec.source = "energy_flow C08, C17";
  spec.sin = "a host read and a dozen small launches for every flow, each head its own products";
  spec.dtypes = {Dtype::kFp32, Dtype::kBf16};
  spec.cases = heads_cases();
  spec.make_inputs = make_inputs;
  // Two products in a row: in bf16 a last-bit difference flips the rounding of the second one's operand.
  const Tolerance chained{Tolerance::Kind::kBound, {2e-5, 5e-6}, {2e-2, 5e-3}, "C08"};
  const Tolerance exact{Tolerance::Kind::kExact, {0, 0}, {0, 0}, "exact outside the decision margins"};
  spec.outputs = {{"energy", chained, 0},
                  {"displacement", chained, 0, true},
                  {"delta", chained, 0, true},
                  {"raw", chained, 0, true},
                  {"spawn_measure", chained, 0, true},
                  {"spawn_count", exact, 0},
                  {"child_energy", chained, 0, true}};
  spec.gradients = heads_gradients();
  for (const char* name : {"carried", "position", "sample_key", "local_id", "grad_energy", "grad_child_energy",
                           "grad_displacement", "grad_delta", "grad_raw"})
    spec.batched_inputs.push_back({name, 0});
  spec.batch_size = "flows";
  spec.ambiguous = energy_flow::carrier_heads::within_margin;
  spec.proof = {{"scalar_reads", "flows (the length or the gate of each)",
                 [](const Setting& s) { return s.size("flows"); }, [](const Setting&) { return std::int64_t{0}; }},
                {"dispatches", "flows * 12 (+ 2 with noise) in movement mode, flows * 18 (+ 1) in gate mode; backward flows * 50 (+ 2) - 6 and "
                 "flows * 63 (+ 1) - 8", naive_dispatches,
                 optimized_dispatches}};
  spec.cost = cost;
  spec.claims = {
      {"D1", "combine the carrier's projections into one product", "15-20 % utilisation", std::nullopt, "unproven"},
      {"D1", "kernel fusion", "1.2x", 1.2, "unproven: part of a product of gains that is inconsistent with its total"},
      {"D0", "vectorising the flows", "5x", 5.0, "unproven: 1.43x was measured with host reads left in"},
  };
  spec.goldens = heads_goldens();
  spec.invariants = {{"ranges", out_of_range}};
  return spec;
}

}  // namespace twinbench::energy_flow::carrier_heads

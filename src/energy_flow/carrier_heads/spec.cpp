// energy_flow.carrier_heads (C08): the heads that turn a carried state into energy, movement and spawns.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "src/operand_bytes.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

Signature signature() {
  // Two products in a row: in bf16 a last-bit difference flips the rounding of the second one's operand.
  const Tolerance chained{Tolerance::Kind::kBound, {2e-5, 5e-6}, {2e-2, 5e-3}, "C08"};
  OutputSpec count = exact_output("spawn_count", "flows", Element::kInt32);
  count.tolerance.spec_class = "exact outside the decision margins";
  Signature s{
      .sizes = {{"flows", 0}, {"hidden", 1, 1 << 14}, {"energy_width", 1, 1 << 14}, {"head_width", 1, 1 << 14}},
      .options = {switch_option("gate", false, "spawn_mode: gate, else movement"),
                  real_option("noise", 0, 0, 1e30, "standard deviation of the exploration noise; 0: none at all"),
                  switch_option("noise_on_z", true, "exploration_noise_apply_to_z"),
                  count_option("seed", 1234, 0, 0x1p53, "of the noise's Philox key"),
                  count_option("attempt", 0, 0, 0xffffffff, "of the training step, in the noise's key"),
                  count_option("step", 0, 0, 65535, "of the flow, in 16 bits of the noise's counter"),
                  real_option("scale", 1, -1e30, 1e30, "of the displacement, before its decay"),
                  real_option("smallest_scale", 1, -1e30, 1e30, "where the decay of the scale ends"),
                  count_option("global_step", 0, 0, 0x1p53, "of the scale's decay: 0.9 every 10 steps after 100"),
                  real_option("movement_threshold", 0.15, 1e-30, 1e30, "theta: the length a child costs"),
                  real_option("gate_threshold", 0.6, 0, 1 - 0x1p-53, "tau: the gate a first child costs"),
                  count_option("most_spawned", 3, 0, 1024, "M: children of a flow at most"),
                  of_inputs(switch_option("clamp_boundary", false, "displacements of 0.5, -0.5 and the float above")),
                  of_inputs(switch_option("non_finite", false, "NaN in every third flow's state")),
                  of_inputs(switch_option("not_differentiable", false, "the inputs lie on a kink by design"))},
      .inputs = {data("carried", "flows, hidden", from_case(0, 0.5)).clamped(-10, 10),  // the carrier's guard
                 data("position", "flows, 3", always("uniform", 1)), keys("sample_key", "flows"),
                 keys("local_id", "flows")},
      .outputs = {output("energy", "flows", chained).with_gradient(8),
                  output("displacement", "flows, 3", chained).with_nan().with_gradient(10),
                  output("delta", "flows, 3", chained).with_nan().with_gradient(11),
                  output("raw", "flows, 3", chained).with_nan().with_gradient(12),
                  output("spawn_measure", "flows", chained).with_nan(), count,
                  output("child_energy", "flows", chained).with_nan().with_gradient(9)},
      .gradient = {Tolerance::Kind::kGradient, {1e-4, 1e-6}, {5e-2, 1e-3}, "grad"},
  };
  std::uint32_t number = 16;
  const auto layer = [&](const std::string& name, const std::string& rows, const std::string& columns, bool trained) {
    InputSpec w = weight(name + "weight", rows + ", " + columns, xavier(number++));
    InputSpec b = bias(name + "bias", rows, uniform(number++, -0.1, 0.1));
    for (const InputSpec& one : {w, b}) s.inputs.push_back(trained ? one : one.without_gradient());
  };
  layer("energy_hidden_", "energy_width", "hidden", true);
  layer("energy_out_", "1", "energy_width", true);
  layer("displacement_hidden_", "head_width", "hidden", true);
  layer("displacement_out_", "3", "head_width", true);
  layer("gate_hidden_", "head_width", "hidden", false);  // the gate decides a count; it is not trained
  layer("gate_out_", "1", "head_width", false);
  layer("child_", "1", "hidden", true);
  return s;
}

Case shaped(std::string name, std::int64_t flows, std::int64_t hidden, std::int64_t energy_width,
            std::int64_t head_width, Options options = {}) {
  return sized_case(std::move(name),
                    {{"flows", flows}, {"hidden", hidden}, {"energy_width", energy_width}, {"head_width", head_width}},
                    std::move(options));
}

std::vector<Case> cases() {
  return {
      shaped("tiny", 4, 4, 2, 4),
      shaped("one", 1, 32, 16, 64, {{"noise", 0.05}}),
      degenerate(shaped("empty", 0, 32, 16, 64)),
      shaped("odd", 37, 29, 15, 61, {{"noise", 0.05}, {"step", 3}, {"attempt", 7}}),
      shaped("odd_gate", 37, 29, 15, 61, {{"gate", 1}, {"noise", 0.05}, {"gate_threshold", 0.45}}),
      timed(shaped("unit", 512, 32, 16, 64, {{"noise", 0.05}, {"most_spawned", 1}})),
      timed(shaped("train", 512, 512, 256, 64, {{"noise", 0.05}, {"movement_threshold", 0.1}})),
      timed(shaped("train_gate", 512, 512, 256, 64, {{"noise", 0.05}, {"gate", 1}})),
      shaped("noise_off", 67, 33, 17, 64),
      shaped("noise_flat", 67, 33, 17, 64, {{"noise", 0.5}, {"noise_on_z", 0}}),
      shaped("decayed_scale", 31, 32, 16, 64, {{"scale", 4}, {"global_step", 135}, {"noise", 0.05}}),
      shaped("clamp_boundary", 65, 32, 16, 64, {{"clamp_boundary", 1}}),
      distributed(shaped("", 61, 47, 23, 64, {{"scale", 2}}), "heavy_tail"),
      distributed(shaped("", 67, 33, 16, 64, {{"noise", 0.05}}), "adversarial"),
      shaped("nan_inputs", 33, 32, 16, 64, {{"non_finite", 1}, {"noise", 0.05}}),
      backward(shaped("tiny", 3, 4, 2, 4, {{"gate", 1}})),
      backward(shaped("odd", 37, 29, 15, 61, {{"gate", 1}, {"scale", 2}, {"noise", 0.05}, {"gate_threshold", 0.45}})),
      backward(shaped("movement", 37, 29, 15, 61, {{"scale", 2}, {"noise", 0.05}})),
      backward(shaped("boundary", 19, 16, 8, 16, {{"not_differentiable", 1}, {"clamp_boundary", 1}})),
      timed(backward(shaped("train", 256, 512, 256, 64, {{"noise", 0.05}}))),
      degenerate(backward(shaped("empty", 0, 29, 15, 61, {{"gate", 1}}))),
  };
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  const std::int64_t flows = setting.size("flows"), hidden = setting.size("hidden");
  for (std::int64_t f = 0; f < flows; ++f) {  // four samples' flows, as a batch holds them
    inputs["sample_key"].mutable_data_ptr<std::int64_t>()[f] = 100 + f * 4 / flows;
    inputs["local_id"].mutable_data_ptr<std::int64_t>()[f] = f;
  }
  float* carried = inputs["carried"].mutable_data_ptr<float>();
  for (std::int64_t f = 0; setting.on("non_finite") && f < flows; f += 3)
    carried[f * hidden + f % hidden] = std::numeric_limits<float>::quiet_NaN();
  // Gates over the whole of 0 .. 1, not crowded about one half: few lie within a decision margin.
  inputs["gate_out_weight"].mul_(6.0);
  const auto displace = [&](double spread, std::array<float, 3> offset) {
    spread == 0 ? inputs["displacement_out_weight"].zero_() : inputs["displacement_out_weight"].mul_(spread);
    std::copy(offset.begin(), offset.end(), inputs["displacement_out_bias"].mutable_data_ptr<float>());
  };
  // Displacements of exactly 0.5, -0.5 and the float above 0.5, whatever the state: the clamp passes gradient up to and
  // at its boundary, and none beyond. Other gradients must not flip at the clamp, for they belong to no flow that could
  // be set aside: displacements well inside the clamp along x and z and well beyond it along y.
  if (setting.on("clamp_boundary"))
    displace(0, {0.5f, -0.5f, std::nextafter(0.5f, 1.0f)});
  else if (setting.backward())
    displace(0.1, {0.02f, 1.2f, -0.05f});
}

// Forward, a flow: energy 5 (two products, GELU, tanh, NaN to zero), displacement 5 (two products, GELU, scale, clamp),
// raw 1, and either the move's length 1 or the gate 4 and child energy 3; noise is added to raw, and in movement mode
// to
// the move as well. Backward adds the tape's replay: 38 or 45 operators a flow, every parameter's gradient of each flow
// but the first added to the sum (in those), and the joining of two gradients.
std::int64_t baseline_dispatches(const Setting& s) {
  const bool gate = s.on("gate");
  const std::int64_t flows = s.size("flows"), noise = s.on("noise") ? (gate ? 1 : 2) : 0;
  const std::int64_t forward = flows * ((gate ? 18 : 12) + noise);
  if (!s.backward() || flows == 0) return forward;
  return forward + (gate ? flows * 45 - 8 : flows * 38 - 6);
}

// Forward: one product on either device; the finishing pass is no operator. Backward: four products more.
std::int64_t optimized_dispatches(const Setting& s) { return s.size("flows") == 0 ? 0 : s.backward() ? 5 : 1; }

Cost cost(const Setting& s) {
  const auto [flows, hidden, energy_width, width] = real_sizes<4>(s, {"flows", "hidden", "energy_width", "head_width"});
  const double gate = s.on("gate") ? 1 : 0;
  const double first = energy_width + width * (1 + gate) + gate, second = energy_width + width * (3 + gate);
  const double weights = first * hidden + second;
  const double floats = flows * (hidden + 3) * (s.backward() ? 2 : 1) + (s.backward() ? weights : 0) + flows * 17;
  return {operand_bytes(s) * weights + 4 * floats, 2 * weights * flows * (s.backward() ? 3 : 1)};
}

// Children never exceed the maximum; energies and displacements never leave their ranges.
std::string out_of_range(const NamedTensors&, const NamedTensors& outputs, const Setting& setting) {
  if (setting.backward() || setting.size("flows") == 0) return "";
  if (!(outputs["energy"].abs().max().item<double>() <= 1)) return "an energy is beyond 1 or NaN";
  if ((outputs["delta"].abs() > 0.5).any().item<bool>()) return "a displacement is beyond its clamp";
  const at::Tensor& count = outputs["spawn_count"];
  if (count.min().item<int>() < 0 || count.max().item<int>() > setting.option("most_spawned"))
    return "a spawn count is outside 0 .. most_spawned";
  return "";
}

// Flows whose spawn count, or, for gradients, whose clamp lies so close to its threshold that rounding may decide it
// (energy-flow specification 0.5: margins of 1e-5, in bf16 1e-2).
at::Tensor within_margin(const NamedTensors& outputs, const Setting& s) {
  const double margin = s.dtype == Dtype::kBf16 ? 1e-2 : 1e-5, most = s.option("most_spawned");
  const double tau = s.option("gate_threshold"), theta = s.option("movement_threshold");
  const at::Tensor measure = outputs["spawn_measure"];
  at::Tensor near = at::zeros(measure.sizes(), at::kBool);
  for (int i = 0; i < most; ++i) {
    const double threshold = s.on("gate") ? tau + i * (1 - tau) / most : (i + 2) * theta;
    const double unit = s.on("gate") ? 1 : theta;  // the movement margin is one of the ratio, not of the length
    near = near.logical_or(measure.sub(threshold).abs().lt(margin * unit));
  }
  // Displacements pinned to the boundary are exact in every mode: nothing can decide them otherwise.
  if (!s.backward() || s.on("clamp_boundary")) return near;
  const double decays = std::floor((s.option("global_step") - 100) / 10), scale = s.option("scale");
  const double now = decays < 0 ? scale : std::max(s.option("smallest_scale"), scale * std::pow(0.9, decays));
  return near.logical_or(outputs["displacement"].mul(now).abs().sub(0.5).abs().lt(margin).any(1));
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.summary = "Energy, displacement and spawn heads of every flow, exploration noise, and the number of children.";
  spec.source = "energy_flow C08, C17";
  spec.sin = "a host read and a dozen small launches for every flow, each head its own products";
  spec.dtypes = {Dtype::kFp32, Dtype::kBf16};
  spec.signature = signature();
  spec.batch_size = "flows";
  spec.cases = cases();
  spec.finish_inputs = finish_inputs;
  spec.ambiguous = within_margin;
  spec.proof = {
      {"scalar_reads", "flows (the length or the gate of each)", [](const Setting& s) { return s.size("flows"); },
       nothing},
      {"dispatches",
       "flows * 12 (+ 2 with noise) in movement mode, flows * 18 (+ 1) in gate mode; backward flows * 50 (+ 2) - 6 and "
       "flows * 63 (+ 1) - 8",
       baseline_dispatches, optimized_dispatches}};
  spec.cost = cost;
  // The specification's 2, and in bf16 mode the kernel that rounds the state, which the carrier leaves rounded.
  spec.most_launches = [](const Setting& s) { return s.dtype == Dtype::kBf16 ? 3 : 2; };
  spec.claims = {
      {"D1", "combine the carrier's projections into one product", "15-20 % utilisation", std::nullopt, "unproven"},
      {"D1", "kernel fusion", "1.2x", 1.2, "unproven: part of a product of gains that is inconsistent with its total"},
      {"D0", "vectorising the flows", "5x", 5.0, "unproven: 1.43x was measured with host reads left in"},
  };
  spec.invariants = {{"ranges", out_of_range}};
  return spec;
}

}  // namespace twinbench::energy_flow::carrier_heads

// energy_flow.carrier_heads (C08): the heads that turn a carried state into energy, movement and spawns.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "src/energy_flow/common/exploration_scale.h"
#include "src/energy_flow/common/flow_networks.h"
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
  add_heads(s, 16);
  return s;
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  const std::int64_t flows = setting.size("flows"), hidden = setting.size("hidden");
  inputs["local_id"].copy_(at::arange(flows));
  const std::int64_t first = 100 + static_cast<std::int64_t>(setting.option("first_key"));
  inputs["sample_key"].copy_(
      at::arange(flows).mul(4).floor_divide(flows).add(first));  // four samples, as a batch holds
  for (std::int64_t f = 0; setting.on("non_finite") && f < flows; f += 3)
    inputs["carried"][f][f % hidden].fill_(std::numeric_limits<double>::quiet_NaN());
  inputs["gate_out_weight"].mul_(6.0);  // gates over the whole of 0 .. 1: few lie within a decision margin
  // At the boundary: exactly 0.5, -0.5 and the float above 0.5, whatever the state; the clamp passes gradient up to and
  // at it, none beyond. Else none may flip there, being no flow's to set aside: far inside in x and z, far beyond in y.
  const bool boundary = setting.on("clamp_boundary");
  if (!boundary && !setting.backward()) return;
  boundary ? inputs["displacement_out_weight"].zero_() : inputs["displacement_out_weight"].mul_(0.1);
  const std::vector<float> at_it{0.5f, -0.5f, std::nextafter(0.5f, 1.0f)}, off_it{0.02f, 1.2f, -0.05f};
  plant(inputs["displacement_out_bias"], 1, boundary ? at_it : off_it);
}

// Forward, a flow: energy 5 (two products, GELU, tanh, NaN to zero), displacement 5 (two products, GELU, scale, clamp),
// raw 1, the move's length 1 or the gate 4 and child energy 3; noise is added to raw, in movement mode to the move too.
// Backward adds the tape's replay, 38 or 45 a flow, sums over flows (one less than flows each) and joins included.
std::int64_t baseline_dispatches(const Setting& s) {
  const std::int64_t flows = s.size("flows"), gate = s.on("gate"), noise = s.on("noise") ? 2 - gate : 0;
  const std::int64_t forward = flows * ((gate ? 18 : 12) + noise);
  return !s.backward() || flows == 0 ? forward : forward + (gate ? flows * 45 - 8 : flows * 38 - 6);
}

// On the CPU the products are our own loops. On CUDA one, and two more backwards: the finishing pass is no operator,
// and sums the second layers' weight gradients on its way.
std::int64_t optimized_dispatches(const Setting& s) {
  return s.size("flows") == 0 || s.device.is_cpu() ? 0 : s.backward() ? 3 : 1;
}

Cost cost(const Setting& s) {
  const auto [flows, hidden, energy_width, width] = real_sizes<4>(s, {"flows", "hidden", "energy_width", "head_width"});
  // The gate's layers decide a count: they have no gradient.
  const double gate = s.on("gate") ? width * (hidden + 1) : 0, child = s.on("gate") ? hidden : 0;
  const double trained = energy_width * (hidden + 1) + width * (hidden + 3) + child, data = flows * (hidden + 3);
  const double floats = s.backward() ? 2 * data + 15 * flows + trained : data + 17 * flows;  // keys have two each
  return {operand_bytes(s) * (trained + gate) + 4 * floats, 2 * flows * ((s.backward() ? 3 : 1) * trained + gate)};
}

std::string out_of_range(const NamedTensors&, const NamedTensors& outputs, const Setting& setting) {
  if (setting.backward() || setting.size("flows") == 0) return "";
  if (!(outputs["energy"].abs().max().item<double>() <= 1)) return "an energy is beyond 1 or NaN";
  if ((outputs["delta"].abs() > 0.5).any().item<bool>()) return "a displacement is beyond its clamp";
  const auto [least, most] = outputs["spawn_count"].aminmax();
  const bool fits = least.item<int>() >= 0 && most.item<int>() <= setting.option("most_spawned");
  return fits ? "" : "a spawn count is outside 0 .. most_spawned";
}

// Flows whose spawn count, or, for gradients, whose clamp lies so close to its threshold that rounding may decide it
// (energy-flow specification 0.5: margins of 1e-5, in bf16 1e-2).
at::Tensor within_margin(const NamedTensors& outputs, const Setting& s) {
  const double margin = s.dtype == Dtype::kBf16 ? 1e-2 : 1e-5, most = s.option("most_spawned");
  const double tau = s.option("gate_threshold"), theta = s.option("movement_threshold");
  at::Tensor near = at::zeros(outputs["spawn_measure"].sizes(), at::kBool);
  for (int i = 0; i < most; ++i) {
    const double threshold = s.on("gate") ? tau + i * (1 - tau) / most : (i + 2) * theta;
    near = near.logical_or(outputs["spawn_measure"].sub(threshold).abs().lt(
        s.on("gate") ? margin : margin * theta));  // of a move it is one of the ratio
  }
  // Displacements pinned to the boundary are exact in every mode: nothing can decide them otherwise.
  if (!s.backward() || s.on("clamp_boundary")) return near;
  return near.logical_or(outputs["displacement"].mul(exploration_scale(s)).abs().sub(0.5).abs().lt(margin).any(1));
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.ambiguous = within_margin;
  spec.proof = {{"scalar_reads", "", [](const Setting& s) { return s.size("flows"); }, nothing},
                {"dispatches", "", baseline_dispatches, optimized_dispatches}};
  spec.cost = cost;
  // The specification's 2, and in bf16 mode the kernel that rounds the state, which the carrier leaves rounded.
  spec.most_launches = [](const Setting& s) { return s.dtype == Dtype::kBf16 ? 3 : 2; };
  spec.invariants = {{"ranges", out_of_range}};
  return spec;
}

}  // namespace twinbench::energy_flow::carrier_heads

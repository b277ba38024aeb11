// trainer2.metric_update (C18): learns the diagonal metric, and block couplings, from how the nudge changed the LIoR.
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "src/common/not_finite.h"
#include "src/spec_parts.h"
#include "src/trainer2/common/metric_state.h"
#include "src/trainer2/common/plane_cases.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2::metric_update {
namespace {

Signature signature() {
  // 2e-6 * rate * |LIoR change| for the metric and the couplings, besides one unit in the last place: see update_bound.
  const Tolerance update{Tolerance::Kind::kBound, {1.2e-6, 2e-6}, {1.2e-6, 2e-6}, "C18"};
  const Tolerance report{Tolerance::Kind::kBound, {1e-5, 1e-9}, {1e-5, 1e-9}, "C18"};
  std::vector<DerivedSize> sizes = plane_sizes();
  sizes.push_back({"blocks", Expression("axes / 2")});
  return {
      .derived = std::move(sizes),
      .inputs = {state("metric", "axes", uniform(1, 0.05, 3)), state("coupling", "blocks", uniform(2, -0.02, 0.02)),
                 state("rejects", "3", not_drawn()).of(Element::kInt64),
                 data("velocity", "steps, batch, axes", from_case(3, 0.3)).batch(std::nullopt).without_gradient(),
                 data("lior_free", "steps", from_case(4, 0.02)).shifted(1).batch(std::nullopt).without_gradient(),
                 data("lior_nudged", "steps", from_case(5, 0.02)).shifted(1).batch(std::nullopt).without_gradient(),
                 data("theta", "planes", uniform(6, -3, 3)).batch(std::nullopt).without_gradient(),
                 keys("plane_axes", "slots, 2").batch(std::nullopt)},
      .outputs = {output("metric", "axes", update).batch(std::nullopt).advanced(),
                  output("coupling", "blocks", update).batch(std::nullopt).advanced(),
                  exact_output("rejects", "3", Element::kInt64).batch(std::nullopt),
                  output("report", "steps, 3", report).batch(std::nullopt).with_nan()},
  };
}

float* floats(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  const std::int64_t axes = setting.size("axes"), steps = setting.size("steps");
  inputs.set("plane_axes", planes_of(setting));
  const at::Tensor rejects = at::zeros({3}, at::kLong);
  rejects.mutable_data_ptr<std::int64_t>()[2] = setting.on("frozen") ? 1 : 0;
  inputs.set("rejects", rejects);
  const auto bad = static_cast<std::int64_t>(setting.option("bad_changes"));
  for (std::int64_t step = 0; step < std::min(bad, steps); ++step)
    floats(inputs["lior_nudged"])[step] = not_finite(step);
  if (setting.on("faint_motion")) inputs["velocity"].mul_(3e-4);  // squares that sum to about the rule's 1e-8
  if (const auto kind = static_cast<std::int64_t>(setting.option("bad_velocity")); kind > 0)
    floats(inputs["velocity"])[axes - 1] = not_finite(kind - 1);
  if (setting.on("far_angles")) inputs["theta"].mul_(3.3e6);
  if (setting.on("huge_change")) floats(inputs["lior_nudged"])[0] = 1e36f;
  if (setting.on("no_change")) inputs["lior_nudged"].copy_(inputs["lior_free"]);
  if (setting.on("at_bounds"))
    for (std::int64_t axis = 0; axis < axes; ++axis) floats(inputs["metric"])[axis] = axis % 2 ? 100.0f : 0.01f;
}

double change_of(const NamedTensors& inputs, std::int64_t step) {
  return double{floats(inputs["lior_nudged"])[step]} - double{floats(inputs["lior_free"])[step]};
}

// rate * |LIoR change|, over the run's updates; at least a tenth, so that one unit in the last place always remains.
double update_bound(const std::string& output, const NamedTensors& inputs, const Setting& setting) {
  if (output != "metric" && output != "coupling") return 1;
  double sum = 0;
  for (std::int64_t step = 0; step < setting.size("steps"); ++step) {
    const double change = std::abs(change_of(inputs, step));
    if (std::isfinite(change)) sum += setting.option("update_rate") * std::min(change, 1e4);
  }
  return std::clamp(sum, 0.1, 1e6);
}

// Accepted updates read the change, the largest square and the mean change; refused ones stop before.
std::int64_t baseline_reads(const Setting& setting) {
  const std::int64_t steps = setting.size("steps"), most = static_cast<std::int64_t>(setting.option("most_rejects"));
  if (setting.on("frozen")) return steps;
  const std::int64_t bad = std::min(static_cast<std::int64_t>(setting.option("bad_changes")), steps);
  if (bad >= most) return steps;  // frozen by then: one read an update
  if (setting.option("bad_velocity") > 0 && bad == 0) return most == 1 ? 2 + (steps - 1) : 2 + 3 * (steps - 1);
  return bad + 3 * (steps - bad);
}

Cost cost(const Setting& setting) {
  const auto [axes, batch, planes, steps] = real_sizes<4>(setting, {"axes", "batch", "planes", "steps"});
  const double blocks = std::floor(axes / 2);
  // Read: velocities, both means, angles, axes of planes (four bytes each are enough). Read and written: the metric.
  // Written: couplings that change, counters.
  const double bytes = 4 * (steps * (batch * axes + 2 + 3) + planes) + 8 * planes + 8 * axes + 24;
  return {bytes, steps * (batch * axes + 26 * planes + 12 * axes + 10 * blocks)};
}

std::string outside(const NamedTensors&, const NamedTensors& outputs, const Setting& setting) {
  const at::Tensor metric = outputs["metric"].cpu().to(at::kDouble).contiguous(),
                   coupling = outputs["coupling"].cpu().to(at::kDouble).contiguous();
  const double* const g = metric.const_data_ptr<double>();
  const double* const c = coupling.const_data_ptr<double>();
  for (std::int64_t axis = 0; axis < metric.numel(); ++axis)
    if (!(g[axis] >= 0.0099999 && g[axis] <= 100)) return "metric[" + std::to_string(axis) + "] is outside its bounds";
  for (std::int64_t block = 0; setting.on("block_rot") && block < coupling.numel(); ++block)
    if (!(c[block] * c[block] < g[2 * block] * g[2 * block + 1]))
      return "block " + std::to_string(block) + " is not positive definite";
  return "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting& setting) {
    check_metric(inputs["metric"]);
    check_planes(inputs["plane_axes"], setting.size("axes"));
  };
  spec.bound_factor = update_bound;
  spec.proof = {{"scalar_reads", "", baseline_reads, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting& setting) { return setting.size("steps"); };
  spec.invariants = {{"metric within its bounds, blocks positive definite", outside}};
  spec.refusals = plane_refusals();
  spec.refusals.push_back({"a metric outside its bounds",
                           [](NamedTensors& inputs, Setting&) { floats(inputs["metric"])[0] = 0; },
                           ErrorKind::kOutOfRange, "metric"});
  return spec;
}

}  // namespace twinbench::trainer2::metric_update

// trainer2.rotor_update (C19): turns every rotor angle towards the mean motion, then wraps all angles to [-pi, pi].
#include <algorithm>
#include <cmath>

#include "src/common/not_finite.h"
#include "src/spec_parts.h"
#include "src/trainer2/common/plane_cases.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2::rotor_update {
namespace {

Signature signature() {
  const Tolerance angle{Tolerance::Kind::kBound, {0, 1e-6}, {0, 1e-6}, "C19"};  // an update; see angle_bound
  const Tolerance change{Tolerance::Kind::kBound, {1e-5, 1e-9}, {1e-5, 1e-9}, "C19"};
  return {
      .derived = plane_sizes(),
      .inputs = {state("theta", "planes", uniform(1, -3, 3)),
                 data("mean_velocity", "steps, axes", from_case(2, 0.3)).batch(std::nullopt).without_gradient(),
                 data("lior_change", "steps", from_case(3, 0.1)).batch(std::nullopt).without_gradient(),
                 keys("plane_axes", "slots, 2").batch(std::nullopt)},
      .outputs = {output("theta", "planes", angle).batch(std::nullopt).with_nan().advanced(),
                  exact_output("updates", "steps", Element::kInt64).batch(std::nullopt),
                  output("mean_change", "steps", change).batch(std::nullopt)},
  };
}

// The rows of a [rows, columns] tensor, or the places of a vector, that a case fills by hand.
float* row(const at::Tensor& tensor, std::int64_t index) {
  return tensor.mutable_data_ptr<float>() + index * (tensor.dim() == 2 ? tensor.size(1) : 1);
}

// Values that sit on the edges: below and above the length at which a plane is skipped, both zeros beside a negative
// number (their angles are -pi and pi), angles at and around pi.
void plant_edges(NamedTensors& inputs, const Setting& setting) {
  constexpr float kEdges[] = {-0.3f, -0.0f, -0.3f, 0.0f, 6e-7f, 6e-7f, 8e-7f, 8e-7f};
  constexpr float kAngles[] = {3.1415927f, -3.1415927f, 3.14159f, 0.0f, -3.1415f, 3.1415f, 1e-8f, -0.0f};
  for (std::int64_t i = 0; i < setting.size("axes"); ++i) row(inputs["mean_velocity"], 0)[i] = kEdges[i % 8];
  for (std::int64_t i = 0; i < setting.size("planes"); ++i) row(inputs["theta"], 0)[i] = kAngles[i % 8];
}

// A thousand steps of 5e-8 each from 0.01: nothing is lost, unless the wrap rounds every angle to a grid.
void plant_small_steps(NamedTensors& inputs) {
  inputs["theta"].fill_(0.01);
  inputs["mean_velocity"].fill_(1);
  inputs["lior_change"].fill_(-5e-8 / (0.1 * std::sqrt(2.0) * std::atan2(1.0, 1.0)));
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  inputs.set("plane_axes", planes_of(setting));
  if (setting.on("edges")) plant_edges(inputs, setting);
  if (setting.on("small_steps")) plant_small_steps(inputs);
  for (std::int64_t step = 0; step < std::min(kNotFiniteKinds, setting.size("steps") - 1); ++step) {
    if (setting.on("bad_velocity")) row(inputs["mean_velocity"], step)[1] = not_finite(step);
    if (setting.on("bad_change")) row(inputs["lior_change"], step)[0] = not_finite(step);
  }
}

// What rounding in fp32 can make of an angle, in units of the specification's 1e-6, and never less than one: of every
// update four roundings of the change (root, arc tangent, two products) and one of the sum.
double angle_bound(const std::string& output, const NamedTensors& inputs, const Setting& setting) {
  if (output != "theta") return 1;
  const double rounding = std::ldexp(1.0, -24), pi = 3.14159265358979;
  double error = 0, reach = 0;
  for (std::int64_t i = 0; i < setting.size("planes"); ++i)
    reach = std::max(reach, std::abs(double{row(inputs["theta"], 0)[i]}));
  for (std::int64_t step = 0; step < setting.size("steps"); ++step) {
    double length = 0;
    for (std::int64_t axis = 0; axis < setting.size("axes"); ++axis)
      length = std::max(length, std::abs(double{row(inputs["mean_velocity"], step)[axis]}));
    const double change = 0.01 * setting.option("update_rate") * std::abs(double{*row(inputs["lior_change"], step)}) *
                          pi * std::sqrt(2.0) * length;
    if (!std::isfinite(change)) continue;  // skipped
    reach = std::min(reach + change, pi + change);
    error += rounding * (4 * change + reach);
  }
  return std::min(std::max(1.0, error / 1e-6), 1e6);
}

Cost cost(const Setting& setting) {
  const auto [axes, planes, slots, steps] = real_sizes<4>(setting, {"axes", "planes", "slots", "steps"});
  // Read: the velocities, the change, the active planes' axes (four bytes each are enough) and angles. Written: the
  // angles and the report.
  // Arithmetic of a plane: three products, a sum, a root, about 20 for the arc tangent, four to wrap.
  return {4 * steps * (axes + 1) + 16 * planes + 12 * steps, steps * planes * 30};
}

// For every slot, active or not: two axes and two components; and the change itself, once an update.
std::int64_t baseline_reads(const Setting& setting) { return setting.size("steps") * (4 * setting.size("slots") + 1); }

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting& setting) {
    check_planes(inputs["plane_axes"], setting.size("axes"));
  };
  spec.bound_factor = angle_bound;
  spec.proof = {{"scalar_reads", "", baseline_reads, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting& setting) { return setting.size("steps"); };
  spec.invariants = {{"angles lie in [-pi, pi]", [](const NamedTensors&, const NamedTensors& outputs, const Setting&) {
                        const at::Tensor angles = outputs["theta"].cpu().to(at::kDouble).contiguous();
                        for (std::int64_t i = 0; i < angles.numel(); ++i)
                          if (std::abs(angles.const_data_ptr<double>()[i]) > 3.1415928)
                            return "theta[" + std::to_string(i) +
                                   "] = " + std::to_string(angles.const_data_ptr<double>()[i]);
                        return std::string();
                      }}};
  spec.refusals = plane_refusals();
  return spec;
}

}  // namespace twinbench::trainer2::rotor_update

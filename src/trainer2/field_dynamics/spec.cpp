// trainer2.field_dynamics (C15): a window of steps of the complex field, by velocity Verlet or the dissipative rule.
#include <ATen/ops/abs.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "src/spec_parts.h"
#include "src/trainer2/common/field_constants.h"

namespace twinbench::trainer2::field_dynamics {
namespace {

constexpr std::int64_t kEnergyOperators = 24;  // and six reads

Signature signature() {
  const Tolerance window{Tolerance::Kind::kBound, {0, 1e-6}, {0, 1e-6}, "C15"};  // times what window_bound says
  const Tolerance sums{Tolerance::Kind::kBound, {1e-5, 1e-6}, {1e-5, 1e-6}, "EQ2"};
  const std::string field = "width, height, dimension, dimension", rows = "dimension, steps";
  return {
      .inputs = {state("field", field, from_case(1)).of(Element::kComplex),
                 state("momentum", field, from_case(2, 0.1)).of(Element::kComplex),
                 state("history", "1", not_drawn()).of(Element::kInt64),
                 bias("equilibrium", field, from_case(3)).of(Element::kComplex).without_gradient(),
                 data("force", "dimension", from_case(4, 0.2)).batch(std::nullopt).without_gradient()},
      .outputs = {output("field", field, window).batch(std::nullopt).of(Element::kComplex).with_nan(),
                  output("momentum", field, window).batch(std::nullopt).of(Element::kComplex).with_nan(),
                  exact_output("history", "1", Element::kInt64).batch(std::nullopt),
                  output("row_modulus", rows, sums).batch(std::nullopt).with_nan(),
                  output("row_mean", rows, sums).batch(std::nullopt).with_nan()},
  };
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  const at::Tensor history = at::zeros({1}, at::kLong);
  *history.mutable_data_ptr<std::int64_t>() = static_cast<std::int64_t>(setting.option("history"));
  inputs.set("history", history);
  if (setting.on("no_force")) inputs["force"].zero_();
  if (setting.on("nan_element"))
    inputs["field"].mutable_data_ptr<c10::complex<float>>()[0] = {std::numeric_limits<float>::quiet_NaN(),
                                                                  std::numeric_limits<float>::quiet_NaN()};
}

double largest(const at::Tensor& tensor) {
  double most = 0;
  const at::Tensor moduli = at::abs(tensor).contiguous();
  for (std::int64_t i = 0; i < moduli.numel(); ++i)
    if (const double value = moduli.const_data_ptr<float>()[i]; std::isfinite(value)) most = std::max(most, value);
  return most;
}

// What the highest mode of the grid becomes in a window: itself, but where steps are too long to be stable.
double growth(const Setting& setting) {
  const FieldConstants by = field_constants(setting);
  if (setting.on("dissipative"))
    return std::pow(std::hypot(1, 8.0 * by.turn * dissipative_factor(setting, 0)), setting.size("steps"));
  const double half = double{by.half_kick} * by.drift * (8 * by.kinetic + by.stiffness) - 1;
  return half > 1 ? std::pow(half + std::sqrt(half * half - 1), static_cast<double>(setting.size("steps"))) : 1;
}

// 2.4e-7 of the largest modulus after one step, 1e-6 after a window, and between them as the root of the steps; times
// what errors grow by.
double window_bound(const std::string& output, const NamedTensors& inputs, const Setting& setting) {
  const double steps = static_cast<double>(setting.size("steps")),
               share = std::min(1.0, 0.24 * std::sqrt(steps)) * growth(setting);
  const FieldConstants by = field_constants(setting);
  const double field = largest(inputs["field"]) + largest(inputs["equilibrium"]), force = largest(inputs["force"]);
  if (output == "field") {
    const double pushed =
        setting.on("dissipative") ? by.turn * force : 2 * by.half_kick * (largest(inputs["momentum"]) + force);
    return std::clamp(share * (field + steps * pushed), 1e-3, 1e6);
  }
  if (output == "momentum")
    return std::clamp(share * (largest(inputs["momentum"]) +
                               steps * 2 * by.half_kick * ((8 * by.kinetic + by.stiffness) * field + force)),
                      1e-3, 1e6);
  return std::clamp(field * growth(setting), 1.0, 1e6);
}

// Complex numbers a run reads and writes, and the sums it returns; per element and step 30 operations, a root among
// them.
Cost cost(const Setting& setting) {
  const auto [width, height, dimension, steps] = real_sizes<4>(setting, {"width", "height", "dimension", "steps"});
  const double elements = width * height * dimension * dimension;
  return {8 * 5 * elements + 4 * (dimension + 2 * steps * dimension) + 16, 30 * elements * steps};
}

constexpr std::int64_t kLaplacian = 9;  // four shifts, three sums, a product, a difference
constexpr std::int64_t kSums = 3;       // moduli, their sum, the mean of the real part

std::int64_t baseline_dispatches(const Setting& setting) {
  const std::int64_t steps = setting.size("steps");
  // Zeros, scaling, its sum, the sum with the outer force (which a copy materialises); the spring's difference,
  // product, difference.
  const std::int64_t force = kLaplacian + 4 + (setting.on("harmonic") ? 3 : 0);
  // A scaled Laplacian, the sum with the outer force, two products, a difference; a copy of the field is kept.
  const std::int64_t step = setting.on("dissipative") ? kLaplacian + 5 : 2 * force + 6;
  return steps * (step + kSums + (setting.on("energy_diagnosis") ? kEnergyOperators : 0)) + 2;
}

std::int64_t baseline_reads(const Setting& setting) {
  return setting.on("energy_diagnosis") ? 6 * setting.size("steps") : 0;
}

using Field = std::complex<double>;

// Kinetic energy, the spring's, and that of the field's slope: what velocity Verlet conserves.
double energy(const NamedTensors& of, const at::Tensor& equilibrium, const Setting& setting) {
  const at::Tensor field = of["field"].cpu().to(at::kComplexDouble).contiguous(),
                   momentum = of["momentum"].cpu().to(at::kComplexDouble).contiguous(),
                   rest = equilibrium.cpu().to(at::kComplexDouble).contiguous();
  const auto numbers = [](const at::Tensor& t) { return reinterpret_cast<const Field*>(t.const_data_ptr()); };
  const Field *t = numbers(field), *q = numbers(momentum), *e = numbers(rest);
  const std::int64_t width = setting.size("width"), height = setting.size("height"),
                     inner = field.numel() / width / height;
  const double mass = setting.option("mass"), hbar = setting.option("hbar"), stiffness = setting.option("stiffness");
  double sum = 0;
  for (std::int64_t x = 0; x < width; ++x)
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t i = 0; i < inner; ++i) {
        const auto at = [&](std::int64_t ax, std::int64_t ay) {
          return t[((ax + width) % width * height + (ay + height) % height) * inner + i];
        };
        const std::int64_t here = (x * height + y) * inner + i;
        const Field laplacian = at(x + 1, y) + at(x - 1, y) + at(x, y + 1) + at(x, y - 1) - 4.0 * t[here];
        sum += std::norm(q[here]) / (2 * mass) + stiffness / 2 * std::norm(t[here] - e[here]) -
               hbar * hbar / (4 * mass) * (std::conj(t[here]) * laplacian).real();
      }
  return sum;
}

std::string drifted(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  if (setting.on("dissipative") || !setting.on("harmonic") || largest(inputs["force"].to(at::kFloat)) > 0) return "";
  const double before = energy(inputs, inputs["equilibrium"], setting),
               after = energy(outputs, inputs["equilibrium"], setting);
  if (!(std::abs(after - before) > 1e-5 * std::abs(before))) return "";
  return "the energy went from " + std::to_string(before) + " to " + std::to_string(after);
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.bound_factor = window_bound;
  spec.proof = {{"dispatches", "", baseline_dispatches, nothing}, {"scalar_reads", "", baseline_reads, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting&) { return 1; };
  spec.refusals = {{"a dissipative rule that divides by zero",
                    [](NamedTensors&, Setting& setting) {
                      setting.input_case.options["dissipative"] = 1;
                      setting.input_case.options["hbar"] = 0;
                    },
                    ErrorKind::kOutOfRange, "hbar"}};
  spec.invariants = {{"without a force the energy stays", drifted}};
  return spec;
}

}  // namespace twinbench::trainer2::field_dynamics

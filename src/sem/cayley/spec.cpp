// sem.cayley (C05, C06): a unitary step along a sparse Hamiltonian, behind the phase rotation of C04.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "src/sem/common/graph.h"
#include "src/sem/common/hamiltonian_inputs.h"
#include "src/sem/common/rotated_system.h"
#include "src/sem/common/small_rows.h"
#include "src/spec_parts.h"

namespace twinbench::sem::cayley {
namespace {

Signature signature() {
  const Tolerance solution{Tolerance::Kind::kBound, {0, 1e-6}, {0, 1e-6}, "C06"};  // times solution_bound
  const auto table = [](const char* name, const char* shape) {
    return weight(name, shape, not_drawn()).of(Element::kInt64).without_gradient();
  };
  return {
      .inputs = {data("psi", "2, rows, dim", from_case(1)).of(Element::kPlanar).batch(1),
                 gain("alpha", "dim", uniform(2, 0, 0.2)), bias("theta", "edges", normal(3, 0.1)),
                 bias("mix", "scales", normal(4, 0.3)), table("nodes", "edges, 2"), table("starts", "scales + 1")},
      .outputs = {output("x", "2, rows, dim", solution).of(Element::kPlanar).batch(1).with_nan().with_gradient(5),
                  exact_output("nonfinite_rows", "1", Element::kInt32).batch(std::nullopt),
                  output("iterations", "2", {Tolerance::Kind::kMeasured, {}, {}, "measured"})
                      .batch(std::nullopt)
                      .of(Element::kInt32)},
      .gradient = {Tolerance::Kind::kGradient, {2e-5, 1e-7}, {2e-5, 1e-7}, "C06"},  // times solution_bound
  };
}

float* floats(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  const std::int64_t rows = setting.size("rows"), dim = setting.size("dim"), edges = setting.size("edges");
  write_graph(inputs, setting);
  if (setting.on("zero_rows"))
    for (std::int64_t row = 0; row < 2 * rows; row += 2) std::fill_n(floats(inputs["psi"]) + row * dim, dim, 0.0f);
  if (setting.on("small_rows"))
    for (std::int64_t i = 0; i < 2 * rows * dim; ++i) floats(inputs["psi"])[i] *= row_scale(i / dim % rows);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  if (setting.on("nan_rows") && rows > 0) {
    floats(inputs["psi"])[dim - 1] = kNan;                       // the first row's real part
    floats(inputs["psi"])[(rows + rows / 2) * dim] = kInfinity;  // the middle row's imaginary part
  }
  if (setting.on("nan_weight") && edges > 0) floats(inputs["theta"])[edges / 2] = kNan;
  spread_weights(inputs, setting);
}

// Of x in units of 1e-6: twice the residual that is allowed times the largest row, as no singular value of the matrix
// is below 1, and what the rounding of a phase turns an element by. Of gradients in units of 2e-5: a tenth for psi's.
double solution_bound(const std::string& output, const NamedTensors& inputs, const Setting& setting) {
  if (output != "x") return output == "grad_psi" ? 0.1 : 1;
  const RotatedSystem layer(inputs, setting);
  double most = 0, phase = 0;
  for (std::int64_t row = 0; row < layer.rows(); ++row)
    if (const double length = norm(layer.psi(row)); std::isfinite(length)) {
      most = std::max(most, length);
      phase = std::max(phase, layer.phase_of(row));
    }
  const double residual =
      setting.option("tolerance") * std::hypot(1, layer.system().largest_shift()) + layer.system().rounding();
  return std::clamp(2e6 * most * residual + 2 * most * std::max(1.0, phase / 2), 1e-3, 1e6);
}

// psi and x, in the backward pass psi, the given gradient and that of psi; the parameters once. A rotation and one
// product with the sparse matrix.
Cost cost(const Setting& setting) {
  const auto [rows, dim, edges, scales] = real_sizes<4>(setting, {"rows", "dim", "edges", "scales"});
  const double planes = setting.backward() ? 3 : 2, parameters = setting.backward() ? 2 : 1;
  return {8 * planes * rows * dim + 4 * parameters * (dim + edges + scales), rows * 20 * dim};
}

std::int64_t number(const NamedTensors& outputs, const char* name, std::int64_t i) {
  return outputs[name].cpu().const_data_ptr<std::int32_t>()[i];
}

// An H-apply and 33 more an iteration, the last seven of which the last one does not need.
std::int64_t solve_dispatches(const Setting& setting, std::int64_t iterations) {
  return 10 + (iterations > 0 ? iterations * (apply_dispatches(setting) + 33) - 7 : 0);
}

constexpr std::int64_t kMostDimOfBlock = 384;  // kMostDim of the kernels

// Rotation, right side, solution, what is returned; backward instead of that the adjoint solution, the gradient from
// it, edges scale by scale and the rotation's way back. Optimized: two products of the library for every 256 rows;
// backward two more and one for the edges. On the CUDA path that one alone, but of rows beyond a block's shared memory,
// whose products are the library's: one, and one more backward.
std::int64_t dispatches(Variant variant, const NamedTensors& outputs, const Setting& setting) {
  const bool backward = setting.backward();
  if (variant != Variant::kBaseline && setting.device.takes_cuda_path()) {
    const bool wide = setting.size("dim") > kMostDimOfBlock;
    return (backward ? 1 : 0) + (wide && setting.size("rows") > 0 ? (backward ? 2 : 1) : 0);
  }
  if (variant != Variant::kBaseline) return (setting.size("rows") + 255) / 256 * (backward ? 5 : 2);
  const std::int64_t apply = apply_dispatches(setting);
  const std::int64_t forward = 15 + apply + 2 + solve_dispatches(setting, number(outputs, "iterations", 0));
  if (!backward) return forward + 9;
  return forward + solve_dispatches(setting, number(outputs, "iterations", 1)) + apply + 2 + 2 +
         (7 + 23 * setting.size("scales")) + 23;
}

std::int64_t reads(Variant variant, const NamedTensors& outputs, const Setting&) {
  return variant == Variant::kBaseline ? number(outputs, "iterations", 0) + number(outputs, "iterations", 1) : 0;
}

constexpr std::int64_t kRowsLookedAt = 64;

// The true residual: a check of the norm alone would not see an unconverged solve (C06).
std::string unsolved(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const RotatedSystem layer(inputs, setting);
  const at::Tensor x = outputs["x"].to(at::kDouble).contiguous();
  const double rounding = layer.system().rounding();
  double worst = 0, most = 0;
  for (std::int64_t row = 0; row < std::min(layer.rows(), kRowsLookedAt); ++row) {
    const auto found = layer.residual(x, row);
    if (!found) continue;
    const double residual = *found;
    const double allowed = setting.option("tolerance") + rounding + 1e-6 * std::max(1.0, layer.phase_of(row));
    most = std::max(most, residual);
    worst = std::max(worst, std::isnan(residual) ? HUGE_VAL : residual / allowed);
  }
  return worst <= 1 ? "" : "the worst relative residual is " + std::to_string(most);
}

std::string not_unitary(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const RotatedSystem layer(inputs, setting);
  const at::Tensor x = outputs["x"].to(at::kDouble).contiguous();
  const double tolerance = setting.option("tolerance"), grown = std::hypot(1, layer.system().largest_shift());
  const double allowed = 1e-6 * grown + (tolerance > 1e-6 ? tolerance : 0) +
                         2 * grown * (layer.system().rounding() - layer.system().least_rounding());
  for (std::int64_t row = 0; row < std::min(layer.rows(), kRowsLookedAt); ++row) {
    const double before = norm(layer.psi(row)), after = norm(layer.row_of(x, row));
    if (!(before > 1e-15) || !std::isfinite(before) || setting.on("nan_weight")) continue;
    if (const double share = after / before; !(std::abs(share * share - 1) <= allowed))
      return "the squared norm of row " + std::to_string(row) + " becomes " + std::to_string(share * share) + " times";
  }
  return "";
}

// Without a step nothing is solved, and the rotation alone is left: an element keeps its modulus.
std::string moved_without_step(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  if (setting.option("dt") != 0) return "";
  const RotatedSystem layer(inputs, setting);
  const at::Tensor x = outputs["x"].to(at::kDouble).contiguous();
  for (std::int64_t row = 0; row < layer.rows(); ++row) {
    const ComplexRow before = layer.psi(row), after = layer.row_of(x, row);
    for (std::size_t i = 0; i < before.size(); ++i)
      if (std::isfinite(std::abs(before[i])) &&
          !(std::abs(std::abs(after[i]) - std::abs(before[i])) <= 5e-7 * std::abs(before[i])))
        return "row " + std::to_string(row) + " changes a modulus";
  }
  return "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting& setting) {
    check_graph(inputs["nodes"], inputs["starts"], setting.size("dim"));
  };
  spec.bound_factor = solution_bound;
  spec.proof = {{"dispatches", "", nullptr, nullptr, dispatches}, {"scalar_reads", "", nullptr, nullptr, reads}};
  spec.cost = cost;
  spec.most_launches = [](const Setting&) { return 2; };
  spec.invariants = {{"the system is solved", unsolved},
                     {"rows keep their norms", not_unitary},
                     {"without a step moduli stay", moved_without_step}};
  spec.refusals = graph_refusals();
  return spec;
}

}  // namespace twinbench::sem::cayley

// sem.lazy_gate (C07, over the solver of C05): calls of the Cayley step that keep their last solution, and a gate that
// skips the solve where it still holds.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "src/sem/common/hamiltonian_inputs.h"
#include "src/sem/common/shifted_system.h"
#include "src/spec_parts.h"

namespace twinbench::sem::lazy_gate {
namespace {

constexpr std::int64_t kRowsLookedAt = 16;

Signature signature() {
  Tolerance solution{Tolerance::Kind::kBound, {0, 1e-6}, {0, 1e-6}, "C07"};  // times solution_bound
  solution.iterative = true;
  const Tolerance measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  const auto table = [](const char* name, const char* shape) {
    return weight(name, shape, not_drawn()).of(Element::kInt64).without_gradient();
  };
  const auto count = [&](const char* name) {
    return output(name, "calls", measured).batch(std::nullopt).of(Element::kInt32);
  };
  return {
      .options = {of_inputs(choice_option("entry", {"none", "exact", "near", "warm", "other"}, "none",
                                          "the cache before the first call: zeros, its solution, that within the gate, "
                                          "that ten times farther than the gate allows, another field's"))},
      .inputs = {data("field", "2, calls, rows, dim", from_case(1)).of(Element::kPlanar).batch(2),
                 state("cache", "2, rows, dim", not_drawn()).of(Element::kPlanar).batch(1),
                 bias("theta", "edges", normal(2, 0.1)), bias("mix", "scales", normal(3, 0.3)),
                 table("nodes", "edges, 2"), table("starts", "scales + 1")},
      .outputs = {output("x", "2, calls, rows, dim", solution).of(Element::kPlanar).batch(2).with_nan(),
                  output("cache", "2, rows, dim", solution).of(Element::kPlanar).batch(1),
                  exact_output("nonfinite_rows", "calls", Element::kInt32).batch(std::nullopt), count("skipped"),
                  count("iterations")},
  };
}

// The system, and the rows of tensors [2, calls, rows, dim].
class Calls {
 public:
  Calls(const NamedTensors& inputs, const Setting& setting)
      : system(inputs, setting.option("dt") / 2, setting.size("dim")),
        calls(setting.size("calls")),
        rows(setting.size("rows")),
        dim_(setting.size("dim")) {}

  // From planes that lie `apart` elements from each other.
  ComplexRow row(const at::Tensor& from, std::int64_t call, std::int64_t row, std::int64_t calls_there) const {
    ComplexRow values(static_cast<std::size_t>(dim_));
    const double* const re = from.const_data_ptr<double>() + (call * rows + row) * dim_;
    const double* const im = re + calls_there * rows * dim_;
    for (std::int64_t i = 0; i < dim_; ++i) values[static_cast<std::size_t>(i)] = {re[i], im[i]};
    return values;
  }
  ComplexRow right_side(const at::Tensor& field, std::int64_t call, std::int64_t which) const {
    return system.operated(row(field, call, which, calls), -1);
  }
  // ||b - A x|| / ||b||
  double residual(const ComplexRow& b, const ComplexRow& x) const {
    ComplexRow left = system.operated(x, 1);
    for (std::size_t i = 0; i < left.size(); ++i) left[i] -= b[i];
    return norm(left) / norm(b);
  }

  const ShiftedSystem system;
  const std::int64_t calls, rows;

 private:
  std::int64_t dim_;
};

at::Tensor exact(const at::Tensor& tensor) { return tensor.cpu().to(at::kDouble).contiguous(); }

// The first call's solution, or what lies so far from it; its own length apart would be zeros.
void fill_cache(NamedTensors& inputs, const Setting& setting) {
  constexpr double kFarther[] = {0, 0, 3e-7, 1e-5, 1.5};  // by entry: near is within the gate of 1e-6
  const auto entry = static_cast<std::size_t>(setting.option("entry"));
  inputs["cache"].zero_();
  if (entry == 0) return;
  const Calls made(inputs, setting);
  const at::Tensor field = exact(inputs["field"]);
  auto* const cache = inputs["cache"].mutable_data_ptr<float>();
  for (std::int64_t row = 0; row < made.rows; ++row) {
    const ComplexRow b = made.right_side(field, 0, row), x = made.system.solved(b, 1e-13, 4000).x;
    ComplexRow off(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) off[i] = std::polar(1.0, 2.0 * static_cast<double>(i * i + 1));
    const double length = kFarther[entry] * norm(b) / std::max(norm(off), 1e-30);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::int64_t place = row * std::ssize(x) + static_cast<std::int64_t>(i);
      cache[place] = static_cast<float>(x[i].real() + length * off[i].real());
      cache[made.rows * std::ssize(x) + place] = static_cast<float>(x[i].imag() + length * off[i].imag());
    }
  }
}

float row_length(const float* re, const float* im, std::int64_t dim) {
  double sum = 0;
  for (std::int64_t i = 0; i < dim; ++i) sum += std::norm(std::complex<double>(re[i], im[i]));
  return static_cast<float>(std::sqrt(sum));
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  const std::int64_t calls = setting.size("calls"), rows = setting.size("rows"), dim = setting.size("dim");
  write_graph(inputs, setting);
  if (setting.on("huge_weights")) inputs["theta"].mul_(10).add_(20);
  auto* const field = inputs["field"].mutable_data_ptr<float>();
  const auto row_of = [&](std::int64_t plane, std::int64_t call, std::int64_t row) {
    return field + ((plane * calls + call) * rows + row) * dim;
  };
  fill_cache(inputs, setting);
  constexpr std::int64_t kPeriod = 20, kFresh = 11, kExact = 14, kWithin = 17;  // S6
  const bool near = setting.on("near_replay");
  for (std::int64_t call = 1; call < calls && (near || setting.on("replay")); ++call) {
    if (call % kPeriod < kFresh) continue;
    for (const std::int64_t plane : {0, 1}) std::copy_n(row_of(plane, call - 1, 0), rows * dim, row_of(plane, call, 0));
    for (std::int64_t row = 0; row < rows && near && call % kPeriod >= kExact; ++row) {
      float& element = row_of(0, call, row)[call % dim];
      element = call % kPeriod < kWithin
                    ? std::nextafter(element, HUGE_VALF)
                    : element + 4e-6f * row_length(row_of(0, call, row), row_of(1, call, row), dim);
    }
  }
  if (setting.on("zero_rows"))
    for (std::int64_t call = 0; call < calls; ++call)
      for (std::int64_t row = 0; row < rows; row += 2)
        for (const std::int64_t plane : {0, 1}) std::fill_n(row_of(plane, call, row), dim, 0.0f);
  if (setting.on("nan_rows") && rows > 0) {
    row_of(0, 0, 0)[dim - 1] = std::numeric_limits<float>::quiet_NaN();
    row_of(1, 0, rows / 2)[0] = std::numeric_limits<float>::infinity();
  }
}

// The residual that a call's result may have, without what rounding adds.
double looseness(const Setting& setting) {
  return std::max(setting.option("tolerance"), setting.on("lazy_cg") ? setting.option("lazy_cg_tol") : 0);
}

// In units of 1e-6: twice the residual that is allowed times the largest right side, as no singular value of the matrix
// is below 1.
double solution_bound(const std::string&, const NamedTensors& inputs, const Setting& setting) {
  const Calls made(inputs, setting);
  const at::Tensor field = exact(inputs["field"]);
  double most = 0;
  for (std::int64_t call = 0; call < made.calls; ++call)
    for (std::int64_t row = 0; row < made.rows; ++row)
      if (const double length = norm(made.row(field, call, row, made.calls)); std::isfinite(length))
        most = std::max(most, length);
  const double allowed = looseness(setting) * std::hypot(1, made.system.largest_shift()) + made.system.rounding();
  return std::clamp(2e6 * most * allowed, 1e-3, 1e6);
}

// A call's field and result, and the cache in and out; a product with the sparse matrix at least.
Cost cost(const Setting& setting) {
  const auto [calls, rows, dim, edges, scales] = real_sizes<5>(setting, {"calls", "rows", "dim", "edges", "scales"});
  return {8 * (2 * calls + 2) * rows * dim + 4 * (edges + scales), calls * rows * 8 * (dim + edges / scales)};
}

std::int64_t iterations_of(const NamedTensors& outputs, std::int64_t call) {
  return outputs["iterations"].cpu().const_data_ptr<std::int32_t>()[call];
}

std::int64_t dispatches(Variant variant, const NamedTensors& outputs, const Setting& setting) {
  if (variant != Variant::kBaseline) return 0;
  std::int64_t all = 3;
  for (std::int64_t call = 0; call < setting.size("calls"); ++call) {
    const std::int64_t iterations = iterations_of(outputs, call);
    all += apply_dispatches(setting) + 24 + (iterations > 0 ? iterations * (apply_dispatches(setting) + 33) - 7 : 0);
  }
  return all;
}

std::int64_t reads(Variant variant, const NamedTensors& outputs, const Setting& setting) {
  std::int64_t all = 0;
  for (std::int64_t call = 0; call < setting.size("calls") && variant == Variant::kBaseline; ++call)
    all += iterations_of(outputs, call);
  return all;
}

std::string at_row(std::int64_t call, std::int64_t row) {
  return "call " + std::to_string(call) + ", row " + std::to_string(row) + ": ";
}

// The true residual of every call, and the norm: after a zero start it is off by the residual's square only.
std::string unsolved(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const Calls made(inputs, setting);
  const at::Tensor field = exact(inputs["field"]), x = exact(outputs["x"]);
  const double grown = std::hypot(1, made.system.largest_shift());
  const double allowed = looseness(setting) + made.system.rounding();
  const double gate = setting.on("lazy_cg") ? setting.option("lazy_cg_tol") : 0;
  const double off = 1e-6 + 2 * grown * (gate + made.system.rounding() - made.system.least_rounding());
  for (std::int64_t call = 0; call < made.calls; ++call)
    for (std::int64_t row = 0; row < std::min(made.rows, kRowsLookedAt); ++row) {
      const ComplexRow b = made.right_side(field, call, row), solution = made.row(x, call, row, made.calls);
      if (!std::isfinite(norm(b))) continue;
      if (norm(b) < 1e-15) {
        if (norm(solution) > 0)
          return at_row(call, row) + "zeros have a solution of norm " + std::to_string(norm(solution));
        continue;
      }
      if (const double residual = made.residual(b, solution); !(residual <= allowed))
        return at_row(call, row) + "the relative residual is " + std::to_string(residual);
      const double share = norm(solution) / norm(made.row(field, call, row, made.calls));
      if (!(std::abs(share * share - 1) <= off))
        return at_row(call, row) + "the squared norm becomes " + std::to_string(share * share) + " times";
    }
  return "";
}

// A skipped call returns the cache bit for bit: the call's before it, or the one that was given.
std::string not_as_cached(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const std::int64_t calls = setting.size("calls"), plane = setting.size("rows") * setting.size("dim");
  const at::Tensor x = outputs["x"].cpu().contiguous(), cache = inputs["cache"].cpu().contiguous(),
                   skipped = outputs["skipped"].cpu().contiguous();
  if (x.scalar_type() != at::kFloat) return "";
  for (std::int64_t call = 0; call < calls; ++call)
    for (std::int64_t part = 0; part < 2 && skipped.const_data_ptr<std::int32_t>()[call] != 0; ++part) {
      const float* const now = x.const_data_ptr<float>() + (part * calls + call) * plane;
      const float* const before = call == 0 ? cache.const_data_ptr<float>() + part * plane : now - plane;
      if (std::memcmp(now, before, static_cast<std::size_t>(plane) * sizeof(float)) != 0)
        return "call " + std::to_string(call) + " was skipped and is not what was cached";
    }
  return "";
}

// The documented gate is the residual's, whatever the inputs hold: where any call was skipped, none was solved whose
// cached rows are within the gate by more than rounding.
std::string solved_within_the_gate(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const Calls made(inputs, setting);
  const at::Tensor field = exact(inputs["field"]), skipped = outputs["skipped"].cpu().contiguous();
  const at::Tensor x = exact(outputs["x"]);
  const auto* const was_skipped = skipped.const_data_ptr<std::int32_t>();
  const double gate = setting.option("lazy_cg_tol") - made.system.rounding();
  if (made.rows == 0 || std::none_of(was_skipped, was_skipped + made.calls, [](auto one) { return one != 0; }))
    return "";
  for (std::int64_t call = 1; call < made.calls; ++call) {
    double worst = was_skipped[call] != 0 ? HUGE_VAL : 0;
    for (std::int64_t row = 0; row < made.rows && worst <= gate; ++row) {
      const double residual = made.residual(made.right_side(field, call, row), made.row(x, call - 1, row, made.calls));
      worst = residual <= gate ? std::max(worst, residual) : HUGE_VAL;  // NaN: of zeros, or not finite
    }
    if (worst <= gate)
      return "call " + std::to_string(call) + " was solved, though what was cached leaves a residual of " +
             std::to_string(1e6 * worst) + "e-6 only";
  }
  return "";
}

// What was skipped, and what was not.
std::string gate_off(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const std::string broken = not_as_cached(inputs, outputs, setting);
  return broken.empty() ? solved_within_the_gate(inputs, outputs, setting) : broken;
}

// Calls that were not skipped took as many iterations as the recurrence takes in fp64 from zero, or one more or less;
// fewer only from a cache that is nearer than zero to a row's solution. A skipped one took none.
std::string iterations_off(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const Calls made(inputs, setting);
  // Sums that round more than the documented layer's stop going down before fp64's do.
  if (made.rows > kRowsLookedAt || made.system.rounding() > made.system.least_rounding()) return "";
  const at::Tensor field = exact(inputs["field"]), skipped = outputs["skipped"].cpu().contiguous();
  const at::Tensor x = exact(outputs["x"]);
  for (std::int64_t call = 0; call < made.calls; ++call) {
    const std::int64_t took = iterations_of(outputs, call);
    std::int64_t wanted = 0;
    bool finite = true, warm = call == 0 && setting.option("entry") != 0;
    for (std::int64_t row = 0; row < made.rows; ++row) {
      const ComplexRow b = made.right_side(field, call, row);
      finite = finite && std::isfinite(norm(b));
      wanted = std::max(wanted, made.system.solved(b, setting.option("tolerance"), 100000).iterations);
      warm = warm || (call > 0 && made.residual(b, made.row(x, call - 1, row, made.calls)) < 1);
    }
    if (!finite) continue;
    const bool was_skipped = skipped.const_data_ptr<std::int32_t>()[call] != 0;
    const std::int64_t most = was_skipped ? 0 : wanted + 1;
    const std::int64_t least = was_skipped || (warm && setting.on("lazy_cg")) ? 0 : wanted - 1;
    if (took > most || took < least)
      return "call " + std::to_string(call) + " took " + std::to_string(took) + " iterations, the recurrence in fp64 " +
             std::to_string(wanted);
  }
  return "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.bound_factor = solution_bound;
  spec.proof = {{"dispatches", "", nullptr, nullptr, dispatches}, {"scalar_reads", "", nullptr, nullptr, reads}};
  spec.cost = cost;
  spec.most_launches = [](const Setting& setting) { return setting.size("calls"); };
  spec.invariants = {{"every call is solved", unsolved},
                     {"what is skipped is what was cached", gate_off},
                     {"iterations are the recurrence's", iterations_off}};
  spec.refusals = graph_refusals();
  return spec;
}

}  // namespace twinbench::sem::lazy_gate

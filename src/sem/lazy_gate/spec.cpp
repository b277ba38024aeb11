// sem.lazy_gate (C07, over the solver of C05): calls of the Cayley step that keep their last solution, and a gate that
// skips the solve where it still holds.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "src/sem/common/gate_rule.h"
#include "src/sem/common/graph.h"
#include "src/sem/common/hamiltonian_inputs.h"
#include "src/sem/common/shifted_system.h"
#include "src/sem/common/small_rows.h"
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
  const auto count = [&](const char* name, const char* shape = "calls") {
    return output(name, shape, measured).batch(std::nullopt).of(Element::kInt32);
  };
  const auto of_call = [](const char* name, const char* shape) { return keys(name, shape).batch(std::nullopt); };
  Tolerance gradient{Tolerance::Kind::kGradient, {2e-5, 1e-7}, {2e-5, 1e-7}, "C06"};  // times solution_bound
  gradient.iterative = true;
  return {
      .options = {of_inputs(choice_option("cached", {"none", "exact", "near", "warm", "other", "later"}, "none",
                                          "the cache before the first call: zeros, its solution, that within the gate, "
                                          "that ten times farther than the gate allows, another field's, its "
                                          "solution under the key of later parameters")),
                  choice_option("gate_policy", {"always", "keyed"}, "always",
                                "when the gate is looked at: whenever there is an entry, or only where it is the "
                                "call's micro-batch by the call's parameters")},
      .inputs = {data("field", "2, calls, rows, dim", from_case(1)).of(Element::kPlanar).batch(2),
                 state("cache", "2, rows, dim", not_drawn()).of(Element::kPlanar).batch(1),
                 state("entry", "3", not_drawn()).of(Element::kInt64), of_call("keys", "calls, 2"),
                 bias("theta", "edges", normal(2, 0.1)), bias("mix", "scales", normal(3, 0.3)),
                 table("nodes", "edges, 2"), table("starts", "scales + 1")},
      .outputs =
          {output("x", "2, calls, rows, dim", solution).of(Element::kPlanar).batch(2).with_nan().with_gradient(4),
           output("cache", "2, rows, dim", solution).of(Element::kPlanar).batch(1),
           exact_output("entry", "3", Element::kInt64).batch(std::nullopt),
           exact_output("nonfinite_rows", "calls", Element::kInt32).batch(std::nullopt), count("skipped"),
           count("gate_evaluations"), count("iterations", "2, calls"), count("row_iterations"), count("discarded_rows"),
           count("unconverged_rows"), output("largest_residual", "calls", measured).batch(std::nullopt)},
      .gradient = gradient,
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
  constexpr double kFarther[] = {0, 0, 3e-7, 1e-5, 1.5, 0};  // by what is cached: near is within the gate of 1e-6
  const auto cached = static_cast<std::size_t>(setting.option("cached"));
  inputs["cache"].zero_();
  if (cached == 0) return;
  const Calls made(inputs, setting);
  const at::Tensor field = exact(inputs["field"]);
  auto* const cache = inputs["cache"].mutable_data_ptr<float>();
  for (std::int64_t row = 0; row < made.rows; ++row) {
    const ComplexRow b = made.right_side(field, 0, row), x = made.system.solved(b, 1e-13, 4000).x;
    ComplexRow off(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) off[i] = std::polar(1.0, 2.0 * static_cast<double>(i * i + 1));
    const double length = kFarther[cached] * norm(b) / std::max(norm(off), 1e-30);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::int64_t place = row * std::ssize(x) + static_cast<std::int64_t>(i);
      cache[place] = static_cast<float>(x[i].real() + length * off[i].real());
      cache[made.rows * std::ssize(x) + place] = static_cast<float>(x[i].imag() + length * off[i].imag());
    }
  }
}

// S6: of twenty calls the last nine; where checkpoints recompute: every second one.
constexpr std::int64_t kPeriod = 20;
bool repeats(std::int64_t call, const Setting& setting) {
  constexpr std::int64_t kFresh = 11;
  return ((setting.on("replay") || setting.on("near_replay")) && call % kPeriod >= kFresh) ||
         (setting.on("recomputed") && call % 2 == 1);
}

// A call's key: its micro-batch, the number of the call that brought it, and the version of the parameters.
void write_keys(NamedTensors& inputs, const Setting& setting) {
  auto* const keys = inputs["keys"].mutable_data_ptr<std::int64_t>();
  auto* const entry = inputs["entry"].mutable_data_ptr<std::int64_t>();
  const auto every = static_cast<std::int64_t>(setting.option("calls_a_version"));
  const auto stride = static_cast<std::int64_t>(setting.option("key_stride"));
  for (std::int64_t call = 0; call < setting.size("calls"); ++call) {
    keys[2 * call] = repeats(call, setting) && call > 0 ? keys[2 * call - 2] : call * stride;
    keys[2 * call + 1] = every > 0 ? call / every : 0;
  }
  constexpr double kNone = 0, kOther = 4, kLater = 5;
  const double cached = setting.option("cached");
  entry[0] = cached != kNone && !setting.on("invalidated") ? 1 : 0;
  entry[1] = cached == kOther ? -1 : 0;
  entry[2] = cached == kLater ? 1 : 0;
}

float row_length(const float* re, const float* im, std::int64_t dim) {
  double sum = 0;
  for (std::int64_t i = 0; i < dim; ++i) sum += std::norm(std::complex<double>(re[i], im[i]));
  return static_cast<float>(std::sqrt(sum));
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  const std::int64_t calls = setting.size("calls"), rows = setting.size("rows"), dim = setting.size("dim");
  write_graph(inputs, setting);
  spread_weights(inputs, setting);
  auto* const field = inputs["field"].mutable_data_ptr<float>();
  const auto row_of = [&](std::int64_t plane, std::int64_t call, std::int64_t row) {
    return field + ((plane * calls + call) * rows + row) * dim;
  };
  fill_cache(inputs, setting);
  write_keys(inputs, setting);
  constexpr std::int64_t kExact = 14, kWithin = 17;  // of S6's calls that repeat, where `near_replay` changes them
  const bool near = setting.on("near_replay");
  for (std::int64_t call = 1; call < calls; ++call) {
    if (!repeats(call, setting)) continue;
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
  if (setting.on("small_rows"))
    for (std::int64_t i = 0; i < 2 * calls * rows * dim; ++i) field[i] *= row_scale(i / dim % rows);
  if (setting.on("nan_rows") && rows > 0) {
    row_of(0, 0, 0)[dim - 1] = std::numeric_limits<float>::quiet_NaN();
    row_of(1, 0, rows / 2)[0] = std::numeric_limits<float>::infinity();
  }
}

// Fewer than the documented layer needs are meant to be too few: every variant stops there, the oracle, too.
bool stops_early(const Setting& setting) { return setting.option("most_iterations") < 24; }
std::int64_t most_iterations(const Setting& setting) {
  return stops_early(setting) ? static_cast<std::int64_t>(setting.option("most_iterations")) : 100000;
}

// The residual that a call's result may have, without what rounding adds.
double looseness(const Setting& setting) {
  return std::max(setting.option("tolerance"), setting.on("lazy_cg") ? setting.option("lazy_cg_tol") : 0);
}

// Of what is solved, in units of 1e-6: twice the residual that is allowed times the largest right side, as no singular
// value of the matrix is below 1. Of gradients in units of 2e-5: a tenth for the field's, and more where the matrix
// rounds more than the documented layer's.
double solution_bound(const std::string& output, const NamedTensors& inputs, const Setting& setting) {
  const Calls made(inputs, setting);
  const double residual = setting.option("tolerance") + made.system.rounding();
  if (output.rfind("grad_", 0) == 0) {
    constexpr double kDocumented = 9e-7;  // 5e-7 and 3e-7 * sqrt(1 + 0.74^2)
    return std::clamp((output == "grad_field" ? 0.1 : 1) * residual / kDocumented, 0.1, 1e3);
  }
  const at::Tensor field = exact(inputs["field"]);
  double most = 0;
  for (std::int64_t call = 0; call < made.calls; ++call)
    for (std::int64_t row = 0; row < made.rows; ++row)
      if (const double length = norm(made.row(field, call, row, made.calls)); std::isfinite(length))
        most = std::max(most, length);
  const double allowed = looseness(setting) * std::hypot(1, made.system.largest_shift()) + made.system.rounding();
  return std::clamp(2e6 * most * allowed, 1e-3, 1e6);
}

// A call's field and result, and the cache as it is left; backward field, given gradient and the field's. A product
// with the sparse matrix at least.
Cost cost(const Setting& setting) {
  const auto [calls, rows, dim, edges, scales] = real_sizes<5>(setting, {"calls", "rows", "dim", "edges", "scales"});
  const double planes = setting.backward() ? 3 * calls : 2 * calls + 1, parameters = setting.backward() ? 2 : 1;
  return {8 * planes * rows * dim + 4 * parameters * (edges + scales), calls * rows * 8 * (dim + edges / scales)};
}

std::int64_t number(const NamedTensors& outputs, const char* name, std::int64_t i) {
  return outputs[name].cpu().contiguous().const_data_ptr<std::int32_t>()[i];
}

// An H-apply and 33 more an iteration, the last seven of which the one that converges does not need.
std::int64_t iterations_dispatches(const Setting& setting, std::int64_t iterations) {
  const std::int64_t unneeded = iterations > 0 && iterations < setting.option("most_iterations") ? 7 : 0;
  return iterations * (apply_dispatches(setting) + 33) - unneeded;
}

// A call: the right side, the solution, what is counted and returned. Backward: the adjoint solution, the gradient from
// it, edges scale by scale, and from the second call on the sums of two gradients. Optimized: the edges' product.
std::int64_t dispatches(Variant variant, const NamedTensors& outputs, const Setting& setting) {
  const std::int64_t calls = setting.size("calls"), apply = apply_dispatches(setting);
  if (variant != Variant::kBaseline) return setting.backward() ? 1 : 0;
  const std::int64_t left = setting.size("rows") > 0 ? 2 : 0;  // a call without rows leaves no entry
  std::int64_t all = setting.backward() ? 4 : 6;
  for (std::int64_t call = 0; call < calls; ++call) {
    all += apply + 32 + left + iterations_dispatches(setting, number(outputs, "iterations", call));
    if (setting.backward())
      all += apply + 15 + iterations_dispatches(setting, number(outputs, "iterations", calls + call)) + 7 +
             23 * setting.size("scales") + (call > 0 ? 2 : 0);
  }
  return all;
}

std::int64_t reads(Variant variant, const NamedTensors& outputs, const Setting& setting) {
  std::int64_t all = 0;
  for (std::int64_t i = 0; i < 2 * setting.size("calls") && variant == Variant::kBaseline; ++i)
    all += number(outputs, "iterations", i);
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
      if (stops_early(setting)) continue;
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

// The documented gate is the residual's, unless keys decide, whatever the inputs hold: where any call was skipped, none
// was solved whose cached rows are within the gate by more than rounding.
std::string solved_within_the_gate(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const Calls made(inputs, setting);
  const at::Tensor field = exact(inputs["field"]), skipped = outputs["skipped"].cpu().contiguous();
  const at::Tensor x = exact(outputs["x"]);
  const auto* const was_skipped = skipped.const_data_ptr<std::int32_t>();
  const double gate = setting.option("lazy_cg_tol") - made.system.rounding();
  const bool any = std::any_of(was_skipped, was_skipped + made.calls, [](auto one) { return one != 0; });
  if (made.rows == 0 || !any || setting.option("gate_policy") != 0) return "";
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
    const std::int64_t took = number(outputs, "iterations", call);
    std::int64_t wanted = 0;
    bool finite = true, warm = call == 0 && setting.option("cached") != 0;
    for (std::int64_t row = 0; row < made.rows; ++row) {
      const ComplexRow b = made.right_side(field, call, row);
      finite = finite && std::isfinite(norm(b));
      wanted =
          std::max(wanted, made.system.solved(b, setting.option("tolerance"), most_iterations(setting)).iterations);
      warm = warm || (call > 0 && made.residual(b, made.row(x, call - 1, row, made.calls)) < 1);
    }
    if (!finite) continue;
    const bool was_skipped = skipped.const_data_ptr<std::int32_t>()[call] != 0;
    // With as many iterations as unknowns fp64 is done by the space's structure; fp32 goes on from what it rounded.
    const bool exhausted = wanted >= setting.size("dim");
    const std::int64_t most = was_skipped ? 0 : exhausted ? 2 * wanted : wanted + 1;
    const std::int64_t least = was_skipped || (warm && setting.on("lazy_cg")) ? 0 : wanted - 1;
    if (took > most || took < least)
      return "call " + std::to_string(call) + (was_skipped ? ", which was skipped," : "") + " took " +
             std::to_string(took) + " iterations; by the recurrence in fp64 " + std::to_string(least) + " to " +
             std::to_string(most);
  }
  return "";
}

// Whether a call may look at the cache: the entry is valid and, where keys decide, the call's own.
bool may_look(const NamedTensors& inputs, const Setting& setting, std::int64_t call) {
  const auto* const keys = inputs["keys"].const_data_ptr<std::int64_t>();
  const auto* const given = inputs["entry"].const_data_ptr<std::int64_t>();
  const std::int64_t* const held = call == 0 ? given + 1 : keys + 2 * call - 2;
  const bool own = held[0] == keys[2 * call] && held[1] == keys[2 * call + 1];
  return setting.on("lazy_cg") && (call > 0 || given[0] != 0) && (setting.option("gate_policy") == 0 || own);
}

// What is counted of a call fits together and to its residuals.
std::string miscounted(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const Calls made(inputs, setting);
  if (made.rows > kRowsLookedAt || made.rows == 0) return "";
  const at::Tensor field = exact(inputs["field"]), x = exact(outputs["x"]),
                   largest = exact(outputs["largest_residual"]);
  const double rounding = made.system.rounding(), tolerance = setting.option("tolerance");
  for (std::int64_t call = 0; call < made.calls; ++call) {
    const auto of = [&](const char* name) { return number(outputs, name, call); };
    const std::int64_t looked = of("gate_evaluations"), iterations = of("iterations"), all = of("row_iterations");
    const std::string where = "call " + std::to_string(call) + ": ";
    if (looked > (may_look(inputs, setting, call) ? 1 : 0)) return where + "no entry of its own, and yet a gate";
    if (of("skipped") > looked) return where + "skipped without a gate";
    if (all < iterations || all > iterations * made.rows)
      return where + std::to_string(all) + " iterations of rows, of which one took " + std::to_string(iterations);
    double worst = 0;
    std::int64_t above = 0, perhaps = 0;  // rows that are surely, and that may be, unconverged
    for (std::int64_t row = 0; row < made.rows; ++row) {
      const ComplexRow b = made.right_side(field, call, row);
      if (!std::isfinite(norm(b)) || norm(b) < 1e-15) continue;
      const double residual = made.residual(b, made.row(x, call, row, made.calls));
      worst = std::max(worst, residual);
      above += residual > looseness(setting) + rounding ? 1 : 0;
      perhaps += residual > tolerance - rounding ? 1 : 0;
    }
    if (const std::int64_t counted = of("unconverged_rows"); counted < above || counted > perhaps)
      return where + std::to_string(counted) + " rows are said to be unconverged, of " + std::to_string(above);
    if (const double said = largest.const_data_ptr<double>()[call];
        !(std::abs(said - worst) <= rounding + 1e-5 * worst))
      return where + "the largest residual is " + std::to_string(worst) + ", not " + std::to_string(said);
  }
  return "";
}

// A row's entry is discarded where it is farther off than zeros: the first call's is given, then what the call before
// it left. Where one lies so near that rounding decides, or the right side is zero, either is allowed.
std::string discarded_off(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  constexpr double kNear = 1e-4;
  const Calls made(inputs, setting);
  if (made.rows > kRowsLookedAt || made.rows == 0) return "";
  const at::Tensor field = exact(inputs["field"]), x = exact(outputs["x"]), cache = exact(inputs["cache"]);
  std::vector<ComplexRow> entries;
  for (std::int64_t row = 0; row < made.rows; ++row) entries.push_back(made.row(cache, 0, row, 1));
  for (std::int64_t call = 0; call < made.calls; ++call) {
    std::int64_t surely = 0, perhaps = 0;
    for (std::int64_t row = 0; row < made.rows; ++row) {
      const ComplexRow b = made.right_side(field, call, row);
      ComplexRow& entry = entries[static_cast<std::size_t>(row)];
      if (std::isfinite(norm(b))) {
        const bool zero = norm(b) < 1e-15;
        const double residual = zero ? 0 : made.residual(b, entry);
        surely += !zero && !(residual <= 1 + kNear) ? 1 : 0;
        perhaps += zero || !(residual <= 1 - kNear) ? 1 : 0;
      }
      const ComplexRow solved = made.row(x, call, row, made.calls);
      if (std::isfinite(norm(solved))) entry = solved;
    }
    const std::int64_t looked = number(outputs, "gate_evaluations", call),
                       counted = number(outputs, "discarded_rows", call);
    if (counted < looked * surely || counted > looked * perhaps)
      return "call " + std::to_string(call) + ": " + std::to_string(counted) + " rows are said to be discarded, of " +
             std::to_string(looked * surely);
  }
  return "";
}

// A call without an entry is the plain solver's, bit for bit.
Setting without_gate(Setting setting) {
  const bool fresh = !setting.on("replay") && !setting.on("near_replay") && !setting.on("recomputed");
  if (setting.option("cached") == 0 && (setting.size("calls") == 1 || (setting.option("gate_policy") != 0 && fresh)))
    setting.input_case.options["lazy_cg"] = 0;
  return setting;
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting& setting) {
    check_gate(setting);
    check_graph(inputs["nodes"], inputs["starts"], setting.size("dim"));
  };
  spec.bound_factor = solution_bound;
  spec.proof = {{"dispatches", "", nullptr, nullptr, dispatches}, {"scalar_reads", "", nullptr, nullptr, reads}};
  spec.cost = cost;
  spec.most_launches = [](const Setting& setting) { return setting.size("calls"); };
  spec.invariants = {{"every call is solved", unsolved},
                     {"what is skipped is what was cached", gate_off},
                     {"iterations are the recurrence's", iterations_off},
                     {"what is counted fits", miscounted},
                     {"what is discarded is farther off than zeros", discarded_off}};
  spec.relations = {{"a gate without an entry, or none", without_gate}};
  spec.refusals = graph_refusals();
  spec.refusals.push_back({"a gate that the solver's own answer does not pass",
                           [](NamedTensors&, Setting& setting) {
                             setting.input_case.options["lazy_cg"] = 1;
                             setting.input_case.options["lazy_cg_tol"] = setting.option("tolerance");
                           },
                           ErrorKind::kBadArgument, "lazy_cg_tol"});
  return spec;
}

}  // namespace twinbench::sem::lazy_gate

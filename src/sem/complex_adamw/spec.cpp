// sem.complex_adamw (C17): clip by the common norm, finite check and AdamW over one arena of plain and complex tensors.
#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max.h>

#include <algorithm>
#include <cmath>

#include "src/common/not_finite.h"
#include "src/common/parameter_arena.h"
#include "src/sem/common/parameter_inventory.h"
#include "src/spec_parts.h"

namespace twinbench::sem::complex_adamw {
namespace {

Signature signature() {
  // 2e-6 relative or four units in the last place, here of 0.5: what is left of a parameter that its step nearly
  // cancels.
  const Tolerance parameters{Tolerance::Kind::kBound, {2e-6, 2.4e-7}, {2e-6, 2.4e-7}, "C17"};
  const Tolerance first{Tolerance::Kind::kBound, {2e-6, 1e-8}, {2e-6, 1e-8}, "C17"};  // times moment_bound
  const Tolerance second{Tolerance::Kind::kBound, {2e-6, 1e-30}, {2e-6, 1e-30}, "C17"};
  const Tolerance clipped{Tolerance::Kind::kBound, {2e-6, 1e-38}, {2e-6, 1e-38}, "C17"};
  const Tolerance wide{Tolerance::Kind::kBound, {1e-12, 1e-300}, {1e-12, 1e-300}, "C17"};  // accumulated in fp64
  const auto of_step = [](const char* name, Draw draw) {
    return data(name, "steps", std::move(draw)).batch(std::nullopt).without_gradient();
  };
  const auto table = [](const char* name, const char* shape) { return keys(name, shape).batch(std::nullopt); };
  const auto result = [](const char* name, const char* shape, const Tolerance& tolerance) {
    return output(name, shape, tolerance).batch(std::nullopt);
  };
  return {
      .derived = {{"entries", Expression("tensors + 2 * pairs"), true},
                  {"elements", Expression("plain + 2 * paired"), true},
                  {"seconds", Expression("plain + paired"), true}},
      .options = {of_inputs(
          choice_option("layout", {"spread", "tiny", "small", "mid", "max_fit"}, "spread",
                        "the arena's tensors: some of every length, or a documented configuration's"))},
      .inputs = {state("parameters", "elements", normal(1, 0.5)), state("first_moment", "elements", normal(2, 0.01)),
                 state("second_moment", "seconds", uniform(3, 1e-6, 1e-3)),
                 state("gradients", "steps, elements", from_case(4, 0.1)),
                 state("counts", "3", not_drawn()).of(Element::kInt64),
                 of_step("learning_rate", uniform(5, 1e-3, 1e-2)), of_step("loss", uniform(6, 1, 4)),
                 table("offsets", "entries + 1"), table("kinds", "entries"), table("seed", "1")},
      .outputs = {result("parameters", "elements", parameters).advanced(),
                  result("first_moment", "elements", first).advanced(),
                  result("second_moment", "seconds", second).advanced(),
                  result("gradients", "steps, elements", clipped).with_nan(),
                  exact_output("counts", "3", Element::kInt64).batch(std::nullopt),
                  exact_output("status", "steps", Element::kInt64).batch(std::nullopt),
                  result("norm", "steps", wide).of(Element::kDouble).with_nan(),
                  result("coefficient", "steps", wide).of(Element::kDouble)},
  };
}

std::int64_t whole(const Setting& setting, const char* option) {
  return static_cast<std::int64_t>(setting.option(option));
}

// The i-th of n tensors that share `all` elements: from short (some empty) to long, no length a round one.
std::int64_t share_of(std::int64_t all, std::int64_t i, std::int64_t n) {
  const auto until = [&](std::int64_t k) {
    const double part = static_cast<double>(k) / static_cast<double>(n);
    return k == n ? all : static_cast<std::int64_t>(static_cast<double>(all) * part * part);
  };
  return until(i + 1) - until(i);
}

// Pairs lie among the plain tensors, as far apart as they can.
std::vector<ParameterLength> spread_layout(const Setting& setting) {
  const std::int64_t tensors = setting.size("tensors"), pairs = setting.size("pairs");
  const std::int64_t with = tensors - std::min(tensors, whole(setting, "without_gradient"));
  std::vector<ParameterLength> all;
  std::int64_t pair = 0;
  for (std::int64_t tensor = 0; tensor < tensors; ++tensor) {
    all.push_back({share_of(setting.size("plain"), tensor, tensors),
                   tensor < with ? ParameterKind::kPlain : ParameterKind::kWithoutGradient});
    for (; pair * tensors < (tensor + 1) * pairs; ++pair)
      for (const auto kind : {ParameterKind::kReal, ParameterKind::kImaginary})
        all.push_back({share_of(setting.size("paired"), pair, pairs), kind});
  }
  return all;
}

std::vector<ParameterLength> layout_of(const Setting& setting) {
  static constexpr const ModelSizes* kModels[] = {&kTinyModel, &kSmallModel, &kMidModel, &kMaxModel};
  const std::int64_t chosen = whole(setting, "layout");
  if (chosen == 0) return spread_layout(setting);
  std::vector<ParameterLength> all = parameter_inventory(*kModels[chosen - 1]);
  std::int64_t elements = 0, seconds = 0;
  for (const auto& one : all) {
    elements += one.count;
    seconds += one.kind == ParameterKind::kImaginary ? 0 : one.count;
  }
  const auto entries = static_cast<std::int64_t>(all.size());
  if (entries != setting.size("entries") || elements != setting.size("elements") || seconds != setting.size("seconds"))
    throw Error(ErrorKind::kOutOfRange, "layout", c10::str(setting.size("elements"), " elements"),
                c10::str("the documented configuration has ", elements, " in ", entries, " tensors, ", seconds,
                         " second moments: take the sizes of its case"));
  return all;
}

struct Totals {
  double plain = 0, pairs = 0;       // tensors with a gradient; of complex ones two make one
  double elements = 0, seconds = 0;  // what an update moves
  std::int64_t tensors() const { return static_cast<std::int64_t>(plain + 2 * pairs); }
};
Totals totals_of(const Setting& setting) {
  Totals totals;
  for (const auto& one : layout_of(setting)) {
    if (one.kind == ParameterKind::kWithoutGradient) continue;
    totals.plain += one.kind == ParameterKind::kPlain;
    totals.pairs += one.kind == ParameterKind::kReal;
    totals.elements += static_cast<double>(one.count);
    if (one.kind != ParameterKind::kImaginary) totals.seconds += static_cast<double>(one.count);
  }
  return totals;
}

std::int64_t bad_gradients(const Setting& setting) {
  return totals_of(setting).elements > 0 ? std::min(whole(setting, "bad_steps"), setting.size("steps")) : 0;
}
bool has_bad_loss(const Setting& setting) {
  return setting.on("bad_loss") && bad_gradients(setting) < setting.size("steps");
}

float* floats(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }
std::int64_t* integers(const at::Tensor& tensor) { return tensor.mutable_data_ptr<std::int64_t>(); }

void set_table(NamedTensors& inputs, const std::vector<ParameterLength>& layout) {
  std::int64_t entry = 0, first = 0;
  integers(inputs["offsets"])[0] = 0;
  for (const auto& one : layout) {
    first += one.count;
    integers(inputs["kinds"])[entry++] = static_cast<std::int64_t>(one.kind);
    integers(inputs["offsets"])[entry] = first;
  }
}

void forget_every_third(NamedTensors& inputs, const std::vector<ParameterEntry>& table, std::int64_t steps) {
  const std::int64_t elements = inputs["parameters"].numel();
  for (const auto& entry : table)
    for (std::int64_t i = 0; i < entry.count; i += 3) {
      floats(inputs["first_moment"])[entry.first + i] = 0;
      floats(inputs["second_moment"])[entry.second + i] = 0;
      for (std::int64_t step = 0; step < steps; ++step)
        floats(inputs["gradients"])[step * elements + entry.first + i] = 0;
    }
}

// Every element has a history of its own order of magnitude, down to a ten-billionth of the usual: denominators lie
// above and below what is added to them and the floor that noise is scaled by.
void fade(NamedTensors& inputs, const std::vector<ParameterEntry>& table, std::int64_t steps) {
  constexpr std::int64_t kOrders = 11;
  const std::int64_t elements = inputs["parameters"].numel();
  for (const auto& entry : table)
    for (std::int64_t i = 0; i < entry.count; ++i) {
      const float scale = std::pow(10.0f, -static_cast<float>(i % kOrders));
      floats(inputs["first_moment"])[entry.first + i] *= scale;
      if (entry.kind != ParameterKind::kImaginary) floats(inputs["second_moment"])[entry.second + i] *= scale * scale;
      for (std::int64_t step = 0; step < steps; ++step)
        floats(inputs["gradients"])[step * elements + entry.first + i] *= scale;
    }
}

// Where the step's gradient is spoilt: in a tensor that has one and is not empty; another place in each step.
std::int64_t place_of_bad(const std::vector<ParameterEntry>& table, std::uint64_t seed, std::int64_t step) {
  const auto tensors = static_cast<std::int64_t>(table.size());
  for (std::int64_t i = 0;; ++i) {
    const ParameterEntry& entry =
        table[static_cast<std::size_t>((static_cast<std::int64_t>(seed % 97) + 7 * step + i) % tensors)];
    if (entry.has_gradient() && entry.count > 0) return entry.first + static_cast<std::int64_t>(seed) % entry.count;
  }
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  const std::int64_t steps = setting.size("steps"), elements = setting.size("elements");
  set_table(inputs, layout_of(setting));
  const auto table = parameter_table(inputs["offsets"], inputs["kinds"], elements, setting.size("seconds"));
  *integers(inputs["seed"]) = static_cast<std::int64_t>((seed + 1) * 0x9E3779B97F4A7C15u);  // both words of the key
  integers(inputs["counts"])[0] = whole(setting, "applied");
  integers(inputs["counts"])[1] = integers(inputs["counts"])[2] = whole(setting, "in_a_row");
  if (setting.on("no_history")) forget_every_third(inputs, table, steps);
  if (setting.on("faint_history")) fade(inputs, table, steps);
  if (setting.on("huge")) inputs["gradients"].mul_(1e25);
  for (const auto& entry : table)
    if (!entry.has_gradient())
      inputs["gradients"].slice(1, entry.first, entry.first + entry.count).fill_(not_finite(0));
  const std::int64_t bad = bad_gradients(setting);
  for (std::int64_t step = 0; step < bad; ++step)
    floats(inputs["gradients"])[step * elements + place_of_bad(table, seed, step)] = not_finite(step);
  if (has_bad_loss(setting))
    floats(inputs["loss"])[bad + static_cast<std::int64_t>(seed % static_cast<std::uint64_t>(steps - bad))] =
        not_finite(static_cast<std::int64_t>(setting.option("bad_loss")) - 1);
}

double largest(const at::Tensor& tensor) {
  double most = 0;
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    if (const double value = std::abs(double{floats(tensor)[i]}); std::isfinite(value)) most = std::max(most, value);
  return most;
}

// A moment that its gradient nearly cancels keeps the rounding of both: units in the last place of the larger one.
double moment_bound(const std::string& output, const NamedTensors& inputs, const Setting& setting) {
  if (output != "first_moment") return 1;
  const double gradient = std::min(largest(inputs["gradients"]), setting.option("clip"));
  return std::clamp((largest(inputs["first_moment"]) + 0.1 * gradient) / 0.04, 1.0, 1e6);
}

std::int64_t baseline_dispatches(const Setting& setting) {
  const Totals totals = totals_of(setting);
  const std::int64_t steps = setting.size("steps"), tensors = totals.tensors(),
                     applied = steps - bad_gradients(setting) - has_bad_loss(setting);
  // Norms; stack, norm, and two that make the sum NaN where the loss is not finite.
  const std::int64_t every = tensors + 4 + (setting.on("clear_gradients") ? tensors : 0);
  const auto update = static_cast<std::int64_t>(9 * totals.plain + 16 * totals.pairs) + tensors +
                      (setting.option("temperature") > 0 ? 4 * tensors : 0);
  return steps * every + applied * update;
}

// Parameters, gradients and both moments are read and written; a suppressed step reads the gradients, and clears them.
Cost cost(const Setting& setting) {
  const Totals totals = totals_of(setting);
  const double steps = static_cast<double>(setting.size("steps")),
               suppressed = static_cast<double>(bad_gradients(setting) + has_bad_loss(setting));
  const double state = steps > suppressed ? 8 * (2 * totals.elements + totals.seconds) : 0;
  const double gradients = 4 * totals.elements * (steps + (setting.on("clear_gradients") ? steps : steps - suppressed));
  return {state + gradients, 2 * steps * totals.elements + (steps - suppressed) * 12 * totals.elements};
}

std::string bookkeeping_broken(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const at::Tensor before = inputs["counts"].cpu().contiguous(), after = outputs["counts"].cpu().contiguous(),
                   status = outputs["status"].cpu().contiguous();
  std::int64_t applied = 0, in_a_row = integers(before)[2];
  for (std::int64_t step = 0; step < status.numel(); ++step) {
    const std::int64_t said = integers(status)[step];
    in_a_row = said == 0 ? 0 : in_a_row + 1;
    applied += said == 0;
    if (said != 0 && said != (in_a_row >= 3 ? 2 : 1))
      return "status " + std::to_string(said) + " of step " + std::to_string(step);
  }
  const std::int64_t expected[] = {integers(before)[0] + applied, integers(before)[1] + status.numel() - applied,
                                   in_a_row};
  for (int i = 0; i < 3; ++i)
    if (integers(after)[i] != expected[i])
      return "counts[" + std::to_string(i) + "] is " + std::to_string(integers(after)[i]);
  const at::Tensor norm = outputs["norm"].cpu().contiguous(), coefficient = outputs["coefficient"].cpu().contiguous();
  for (std::int64_t step = 0; step < status.numel(); ++step) {
    const double by = coefficient.const_data_ptr<double>()[step], of = norm.const_data_ptr<double>()[step];
    if (integers(status)[step] == 0 ? !(by * of <= setting.option("clip") * (1 + 1e-6)) : by != 0)
      return "coefficient " + std::to_string(by) + " of step " + std::to_string(step);
  }
  return "";
}

std::string moved_while_suppressed(const NamedTensors& inputs, const NamedTensors& outputs, const Setting&) {
  const at::Tensor status = outputs["status"].cpu().contiguous();
  for (std::int64_t step = 0; step < status.numel(); ++step)
    if (integers(status)[step] == 0) return "";
  for (const char* name : {"parameters", "first_moment", "second_moment"})
    if (!inputs[name].equal(outputs[name])) return std::string(name) + " moved although every step was suppressed";
  return "";
}

Refusal bad_table(const char* name, ErrorKind kind, const char* field,
                  void (*spoil)(std::int64_t* offsets, std::int64_t* kinds)) {
  return {name,
          [spoil](NamedTensors& inputs, Setting&) { spoil(integers(inputs["offsets"]), integers(inputs["kinds"])); },
          kind, field};
}

// Of the first case: plain, real, imaginary, plain, real, imaginary, plain.
std::vector<Refusal> refusals() {
  return {bad_table("offsets that fall", ErrorKind::kOutOfRange, "offsets",
                    [](std::int64_t* offsets, std::int64_t*) { offsets[1] = offsets[2] + 1; }),
          bad_table("offsets that leave the arena", ErrorKind::kOutOfRange, "offsets",
                    [](std::int64_t* offsets, std::int64_t*) { ++offsets[7]; }),
          bad_table("an unknown kind", ErrorKind::kOutOfRange, "kinds",
                    [](std::int64_t*, std::int64_t* kinds) { kinds[0] = 4; }),
          bad_table("an imaginary part without gradient", ErrorKind::kBadArgument, "kinds",
                    [](std::int64_t*, std::int64_t* kinds) { kinds[2] = 3; }),
          bad_table("a real part without gradient", ErrorKind::kBadArgument, "kinds",
                    [](std::int64_t*, std::int64_t* kinds) { kinds[1] = 3; }),
          bad_table("a real part at the end", ErrorKind::kBadArgument, "kinds",
                    [](std::int64_t*, std::int64_t* kinds) { kinds[6] = 1; }),
          bad_table("parts of two lengths", ErrorKind::kDimensionMismatch, "offsets",
                    [](std::int64_t* offsets, std::int64_t*) { ++offsets[2]; }),
          bad_table("a second moment too few", ErrorKind::kDimensionMismatch, "second_moment",
                    [](std::int64_t*, std::int64_t* kinds) { kinds[1] = kinds[2] = 0; }),
          {"a count below 0", [](NamedTensors& inputs, Setting&) { integers(inputs["counts"])[0] = -1; },
           ErrorKind::kOutOfRange, "counts"},
          {"a count that no training reaches",
           [](NamedTensors& inputs, Setting&) { integers(inputs["counts"])[2] = kMostUpdates + 1; },
           ErrorKind::kOutOfRange, "counts"}};
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting&) { check_update_counts(inputs["counts"]); };
  spec.bound_factor = moment_bound;
  spec.proof = {{"dispatches", "", baseline_dispatches, nothing},
                {"scalar_reads", "", [](const Setting& setting) { return setting.size("steps"); }, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting& setting) { return 2 * setting.size("steps"); };
  spec.invariants = {{"status, counts and coefficients agree", bookkeeping_broken},
                     {"suppressed steps move nothing", moved_while_suppressed}};
  spec.refusals = refusals();
  return spec;
}

}  // namespace twinbench::sem::complex_adamw

// energy_flow.optimizer (C25, C26): gradients clipped by their common norm, AdamW over one arena of parameters where
// the norm is finite, and the plateau schedule of the learning rate.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/common/not_finite.h"
#include "src/energy_flow/common/optimizer_rule.h"
#include "src/energy_flow/common/trained_tensors.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::optimizer {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

Signature signature() {
  // C26: 2e-7 relative an update; the absolute part is what rounding leaves of a parameter near 0.
  const Tolerance parameters{Tolerance::Kind::kBound, {2e-7, 1e-9}, {2e-7, 1e-9}, "C26"};
  const Tolerance first{Tolerance::Kind::kBound, {2e-6, 2e-9}, {2e-6, 2e-9}, "C26"};
  const Tolerance second{Tolerance::Kind::kBound, {2e-6, 1e-30}, {2e-6, 1e-30}, "C26"};
  const Tolerance clipped{Tolerance::Kind::kBound, {2e-6, 1e-38}, {2e-6, 1e-38}, "elementwise"};
  const Tolerance norm{Tolerance::Kind::kBound, {1e-6, 1e-300}, {1e-6, 1e-300}, "C25"};
  const auto result = [](const char* name, const char* shape, const Tolerance& tolerance) {
    return output(name, shape, tolerance).batch(std::nullopt);
  };
  const auto exact = [](const char* name, const char* shape, Element element) {
    return exact_output(name, shape, element).batch(std::nullopt);
  };
  const auto table = [](const char* name, const char* shape) { return keys(name, shape).batch(std::nullopt); };
  const auto given = [](const char* name, const char* shape) {
    return data(name, shape, not_drawn()).batch(std::nullopt).without_gradient();
  };
  return {
      .derived = {{"steps", Expression("epochs * windows")}},
      .options = {of_inputs(
          choice_option("course", {"falling", "flat", "not_finite"}, "falling", "the mean losses of the epochs"))},
      .inputs = {state("parameters", "elements", normal(1, 0.5)), state("first_moment", "elements", normal(2, 3e-3)),
                 state("second_moment", "elements", uniform(3, 1e-6, 1e-4)),
                 state("gradients", "steps, elements", from_case(4, 0.1)),
                 state("counts", "3", not_drawn()).of(Element::kInt64),
                 state("schedule", "2", not_drawn()).of(Element::kDouble), given("gradient_factor", "steps"),
                 given("epoch_loss", "epochs").of(Element::kDouble), table("micro_steps", "steps"),
                 table("offsets", "tensors + 1"), table("has_gradient", "tensors")},
      .outputs = {result("parameters", "elements", parameters).advanced(),
                  result("first_moment", "elements", first).advanced(),
                  result("second_moment", "elements", second).advanced(),
                  result("gradients", "steps, elements", clipped).with_nan(), exact("counts", "3", Element::kInt64),
                  exact("schedule", "2", Element::kDouble).with_nan(), exact("status", "steps", Element::kInt64),
                  result("norm", "steps", norm).of(Element::kDouble).with_nan(),
                  result("coefficient", "steps", norm).of(Element::kDouble),
                  exact("learning_rate", "steps", Element::kDouble)},
  };
}

std::int64_t whole(const Setting& setting, const char* option) {
  return static_cast<std::int64_t>(setting.option(option));
}
float* floats(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }
double* doubles(const at::Tensor& tensor) { return tensor.mutable_data_ptr<double>(); }
std::int64_t* integers(const at::Tensor& tensor) { return tensor.mutable_data_ptr<std::int64_t>(); }

// Where the i-th of the tensors that share all elements begins: from short (some empty) to long, no length a round one.
std::int64_t start_of(const Setting& setting, std::int64_t i) {
  const std::int64_t elements = setting.size("elements"), tensors = setting.size("tensors");
  const double part = static_cast<double>(i) / static_cast<double>(tensors);
  return i == tensors ? elements : static_cast<std::int64_t>(static_cast<double>(elements) * part * part);
}

std::int64_t trained(const Setting& setting) {
  return setting.size("tensors") - std::min(setting.size("tensors"), whole(setting, "without_gradient"));
}
std::int64_t trained_elements(const Setting& setting) { return start_of(setting, trained(setting)); }

// How a window goes, by its place in the run: first those with a bad gradient, then those without a micro-step.
WindowStatus planned(const Setting& setting, std::int64_t window) {
  const std::int64_t bad = trained_elements(setting) > 0 ? whole(setting, "bad_windows") : 0;
  return window < bad                                     ? WindowStatus::kNotFinite
         : window < bad + whole(setting, "empty_windows") ? WindowStatus::kNothingToApply
                                                          : WindowStatus::kApplied;
}
std::int64_t windows_that(const Setting& setting, WindowStatus status) {
  std::int64_t count = 0;
  for (std::int64_t window = 0; window < setting.size("steps"); ++window) count += planned(setting, window) == status;
  return count;
}

bool is_scaled(const Setting& setting, std::int64_t window) {
  return setting.on("loss_scaling") || (setting.on("short_window") && window == setting.size("steps") - 1);
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  const std::int64_t elements = setting.size("elements"), steps = setting.size("steps"),
                     with = trained_elements(setting);
  for (std::int64_t i = 0; i <= setting.size("tensors"); ++i) integers(inputs["offsets"])[i] = start_of(setting, i);
  for (std::int64_t i = 0; i < setting.size("tensors"); ++i)
    integers(inputs["has_gradient"])[i] = i < trained(setting) ? 1 : 0;
  integers(inputs["counts"])[0] = whole(setting, "applied");
  integers(inputs["counts"])[1] = static_cast<std::int64_t>(seed % 5);
  integers(inputs["counts"])[2] = whole(setting, "bad_epochs");
  doubles(inputs["schedule"])[0] = starting_rate(setting.option("configured_rate"));
  doubles(inputs["schedule"])[1] = setting.on("first_epoch") ? kInfinity : 1 + static_cast<double>(seed % 7) / 8;
  const double best = setting.on("first_epoch") ? 2 : doubles(inputs["schedule"])[1];
  for (std::int64_t epoch = 0; epoch < setting.size("epochs"); ++epoch) {
    const double falling = best * (1 - 2 * kLeastGain * static_cast<double>(epoch + 1)),
                 flat = best * (1 - 0.9 * kLeastGain + 0.1 * static_cast<double>(epoch % 3)),
                 broken = epoch % 4 == 0 ? falling : not_finite(epoch % 4 - 1);
    const double by_course[] = {falling, flat, broken};
    doubles(inputs["epoch_loss"])[epoch] = by_course[whole(setting, "course")];
  }
  if (setting.on("denormal")) inputs["gradients"].mul_(1e-37).mul_(1e-5);
  if (setting.on("huge")) inputs["gradients"].mul_(1e25);
  if (setting.on("loss_scaling")) inputs["gradients"].mul_(65536);
  inputs["gradients"].slice(1, with).fill_(kNan);
  for (std::int64_t window = 0; window < steps; ++window) {
    const WindowStatus status = planned(setting, window);
    const bool is_short = setting.on("short_window") && window == steps - 1;
    floats(inputs["gradient_factor"])[window] =
        (setting.on("loss_scaling") ? 1.0f / 65536 : 1.0f) * (is_short ? 4.0f / 3 : 1.0f);
    integers(inputs["micro_steps"])[window] = status == WindowStatus::kNothingToApply ? 0 : is_short ? 3 : 4;
    float* const row = floats(inputs["gradients"]) + window * elements;
    if (status == WindowStatus::kNotFinite)  // another place in each window
      row[(static_cast<std::int64_t>(seed % 1009) + 7 * window * window) % with] = not_finite(window);
    if (status == WindowStatus::kNothingToApply) std::fill_n(row, with, 0.0f);  // selected away, all of them
  }
}

// 2e-7 is a single update's.
double by_updates(const std::string& output, const NamedTensors&, const Setting& setting) {
  const auto updates = static_cast<double>(windows_that(setting, WindowStatus::kApplied));
  return output == "parameters" ? std::max(updates, 1.0) : 1;
}

std::int64_t baseline_dispatches(const Setting& setting) {
  const std::int64_t tensors = trained(setting), steps = setting.size("steps");
  if (tensors == 0) return 0;
  const std::int64_t applied = windows_that(setting, WindowStatus::kApplied);
  std::int64_t scaled = 0, monitored = 0;
  for (std::int64_t window = 0; window < steps; ++window) scaled += is_scaled(setting, window);
  for (std::int64_t i = 0; setting.on("gradient_monitoring") && i < tensors; ++i)
    monitored += start_of(setting, i + 1) > start_of(setting, i);
  // Finite test and norm; stack and norm of the norms; what is cleared; three figures of a tensor that has elements.
  const std::int64_t cleared = setting.on("clear_gradients") ? steps : steps - applied;
  return steps * (6 * tensors + 2 + 3 * monitored) + (scaled + cleared) * tensors + applied * 9 * tensors;
}

std::int64_t baseline_reads(const Setting& setting) {
  const std::int64_t tensors = trained(setting);
  std::int64_t monitored = 0;
  for (std::int64_t i = 0; setting.on("gradient_monitoring") && i < tensors; ++i)
    monitored += start_of(setting, i + 1) > start_of(setting, i);
  return tensors == 0 ? 0 : setting.size("steps") * (2 * tensors + 1 + 3 * monitored);
}

// Parameters, gradients and both moments are read and written; a window that is not applied reads and clears gradients.
Cost cost(const Setting& setting) {
  const auto elements = static_cast<double>(trained_elements(setting)),
             steps = static_cast<double>(setting.size("steps")),
             applied = static_cast<double>(windows_that(setting, WindowStatus::kApplied));
  const double state = applied > 0 ? 24 * elements : 0;
  return {state + 8 * elements * steps, (2 * steps + 12 * applied) * elements};
}

std::string bookkeeping_broken(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const at::Tensor before = inputs["counts"].cpu().contiguous(), after = outputs["counts"].cpu().contiguous(),
                   status = outputs["status"].cpu().contiguous(), norm = outputs["norm"].cpu().contiguous(),
                   coefficient = outputs["coefficient"].cpu().contiguous();
  std::int64_t applied = 0, skipped = 0;
  for (std::int64_t window = 0; window < status.numel(); ++window) {
    const auto said = static_cast<WindowStatus>(integers(status)[window]);
    applied += said == WindowStatus::kApplied;
    skipped += said == WindowStatus::kNotFinite;
    const double by = doubles(coefficient)[window], of = doubles(norm)[window];
    if (std::isfinite(of) == (said == WindowStatus::kNotFinite))
      return c10::str("status ", integers(status)[window], " of window ", window, " with norm ", of);
    const bool bounded = setting.option("clip") <= 0 ? by == 1 : by * of <= setting.option("clip") * (1 + 1e-6);
    if (said == WindowStatus::kApplied ? !bounded : by != 0)
      return c10::str("coefficient ", by, " of window ", window, " with norm ", of);
  }
  if (integers(after)[0] != integers(before)[0] + applied) return "applied updates are counted wrong";
  if (integers(after)[1] != integers(before)[1] + skipped) return "skipped updates are counted wrong";
  return integers(after)[2] > kPatience ? "more bad epochs than the schedule's patience" : "";
}

// A window that is not applied moves nothing and leaves no gradient, whatever they held; without a gradient a tensor
// stays.
std::string moved_without_update(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const at::Tensor status = outputs["status"].cpu().contiguous();
  const std::int64_t with = trained_elements(setting);
  std::int64_t applied = 0;
  for (std::int64_t window = 0; window < status.numel(); ++window) {
    const bool is_applied = integers(status)[window] == static_cast<std::int64_t>(WindowStatus::kApplied);
    applied += is_applied;
    if (!is_applied && outputs["gradients"].select(0, window).slice(0, 0, with).ne(0).any().item<bool>())
      return c10::str("gradients of window ", window, " are left though it was not applied");
  }
  for (const char* name : {"parameters", "first_moment", "second_moment"})
    if (const std::int64_t from = applied == 0 ? 0 : with;
        !inputs[name].slice(0, from).equal(outputs[name].slice(0, from)))
      return std::string(name) + " moved without an update";
  return "";
}

std::vector<Refusal> refusals() {
  const auto spoiled = [](const char* name, const char* input, std::int64_t at, std::int64_t by) {
    return Refusal{name, [=](NamedTensors& inputs, Setting&) { integers(inputs[input])[at] += by; },
                   ErrorKind::kOutOfRange, input};
  };
  return {spoiled("offsets that fall", "offsets", 1, 1 << 20), spoiled("offsets that begin late", "offsets", 0, 1),
          spoiled("neither with nor without a gradient", "has_gradient", 0, 1),
          spoiled("a count below 0", "counts", 0, -1 - (std::int64_t{1} << 40)),
          spoiled("a count that no training reaches", "counts", 1, kMostUpdates + 1)};
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.bound_factor = by_updates;
  spec.proof = {{"dispatches", "", baseline_dispatches, nothing}, {"scalar_reads", "", baseline_reads, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting& setting) { return 2 * setting.size("steps"); };
  spec.invariants = {{"status, counts and coefficients agree", bookkeeping_broken},
                     {"what is not applied moves nothing", moved_without_update}};
  spec.relations = {{"loss scaling by a power of two changes no bit", [](Setting setting) {
                       setting.input_case.options["loss_scaling"] = setting.on("loss_scaling") ? 0 : 1;
                       return setting;
                     }}};
  spec.refusals = refusals();
  return spec;
}

}  // namespace twinbench::energy_flow::optimizer

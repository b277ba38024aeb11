// energy_flow.data_parallel (C33): a window's gradients added up over ranks, weighed by the rows that each had, and the
// same update in all of them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/common/not_finite.h"
#include "src/common/parameter_arena.h"
#include "src/energy_flow/common/window_rows.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::data_parallel {
namespace {

constexpr std::int64_t kFloatBytes = 4;

Signature signature() {
  // C33: 1e-5 of the gradient; the clipped gradient and what follows from it have no more.
  const Tolerance gradient{Tolerance::Kind::kGradient, {1e-5, 0}, {1e-5, 0}, "C33"};
  const Tolerance parameters{Tolerance::Kind::kBound, {2e-7, 1e-9}, {2e-7, 1e-9}, "C26"};
  const Tolerance first{Tolerance::Kind::kBound, {1e-5, 2e-9}, {1e-5, 2e-9}, "C33"};
  const Tolerance second{Tolerance::Kind::kBound, {1e-5, 1e-12}, {1e-5, 1e-12}, "C33"};
  const Tolerance norm{Tolerance::Kind::kBound, {1e-5, 1e-12}, {1e-5, 1e-12}, "C33"};
  const auto result = [](const char* name, const char* shape, const Tolerance& tolerance) {
    return output(name, shape, tolerance).batch(std::nullopt);
  };
  const auto exact = [](const char* name, const char* shape, Element element) {
    return exact_output(name, shape, element).batch(std::nullopt);
  };
  return {
      .inputs =
          {state("parameters", "elements", normal(1, 0.5)), state("first_moment", "elements", normal(2, 3e-3)),
           state("second_moment", "elements", uniform(3, 1e-5, 1e-4)),
           state("counts", "2", not_drawn()).of(Element::kInt64),
           data("gradients", "ranks, micro_steps, elements", from_case(4, 0.1)).batch(std::nullopt).without_gradient(),
           keys("rows", "ranks, micro_steps").batch(std::nullopt), keys("offsets", "tensors + 1").batch(std::nullopt)},
      .outputs = {result("parameters", "elements", parameters).advanced(),
                  result("first_moment", "elements", first).advanced(),
                  result("second_moment", "elements", second).advanced(), exact("counts", "2", Element::kInt64),
                  result("gradient", "elements", gradient).with_nan(),
                  result("norm", "1", norm).of(Element::kDouble).with_nan(), exact("status", "ranks", Element::kInt64),
                  exact("equal", "ranks", Element::kBool)},
  };
}

std::int64_t* integers(const at::Tensor& tensor) { return tensor.mutable_data_ptr<std::int64_t>(); }

std::int64_t start_of(const Setting& setting, std::int64_t tensor) {
  const double part = static_cast<double>(tensor) / static_cast<double>(setting.size("tensors"));
  return tensor == setting.size("tensors")
             ? setting.size("elements")
             : static_cast<std::int64_t>(static_cast<double>(setting.size("elements")) * part * part);
}

// Rows differ from rank to rank and from micro-step to micro-step; the last rank may have none.
std::int64_t rows_of(const Setting& setting, std::int64_t rank, std::int64_t micro_step) {
  if (setting.on("idle_rank") && rank > 0 && rank + 1 == setting.size("ranks")) return 0;
  return setting.on("ragged") ? 1 + (13 + 7 * rank + 3 * micro_step) % 16 : 4;
}

bool holds_gradients(const Setting& setting) { return setting.size("elements") > 0; }

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  const std::int64_t ranks = setting.size("ranks"), steps = setting.size("micro_steps"),
                     elements = setting.size("elements");
  integers(inputs["counts"])[0] = 5 + static_cast<std::int64_t>(seed % 40);
  integers(inputs["counts"])[1] = static_cast<std::int64_t>(seed % 3);
  for (std::int64_t i = 0; i <= setting.size("tensors"); ++i) integers(inputs["offsets"])[i] = start_of(setting, i);
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::int64_t rows = rows_of(setting, rank, i);
      integers(inputs["rows"])[rank * steps + i] = rows;
      // A rank that had no rows has run no backward pass: whatever lies there is none of anybody's gradients.
      if (rows == 0) inputs["gradients"][rank][i].fill_(std::numeric_limits<double>::quiet_NaN());
    }
  if (const auto kind = static_cast<std::int64_t>(setting.option("not_finite")); kind > 0 && holds_gradients(setting)) {
    const auto at = static_cast<std::int64_t>(seed % static_cast<std::uint64_t>(elements));
    inputs["gradients"][ranks > 1 ? 1 : 0][steps - 1][at].fill_(not_finite(3 - kind));
  }
}

bool applied(const Setting& setting) { return setting.option("not_finite") == 0 || !holds_gradients(setting); }
bool grouped(const Setting& setting) { return !setting.on("no_group") || setting.size("ranks") > 1; }
std::int64_t verified(const Setting& setting) {
  return setting.option("digest_every") == 1 && grouped(setting) ? 1 : 0;
}

// A tensor: cleared; in each micro-step weighed, reduced, added; its norm; scaled, and eight for the update.
std::int64_t baseline_dispatches(const Setting& setting) {
  const std::int64_t tensors = setting.size("tensors"), steps = setting.size("micro_steps");
  const std::int64_t one = 1 + steps * (grouped(setting) ? 3 : 2) + 1 + (applied(setting) ? 9 : 0);
  return setting.size("ranks") * (tensors * one + 2 + verified(setting));
}

std::int64_t buckets(const Setting& setting) {
  const auto most = static_cast<std::int64_t>(setting.option("bucket_bytes"));
  std::int64_t count = 0, filled = most + 1;
  for (std::int64_t i = setting.size("tensors"); i-- > 0;) {
    const std::int64_t bytes = kFloatBytes * (start_of(setting, i + 1) - start_of(setting, i));
    if (bytes == 0) continue;
    if (filled + bytes > most) ++count, filled = 0;
    filled += bytes;
  }
  return count;
}

// All-reduces alone, of buckets.
std::int64_t optimized_dispatches(const Setting& setting) {
  return grouped(setting) ? setting.size("ranks") * (buckets(setting) + verified(setting)) : 0;
}

// Each rank reads its gradients, and reads and writes parameters and moments; a micro-step's row is a multiplication
// and an addition, the norm too, an update some twelve.
Cost cost(const Setting& setting) {
  const auto [ranks, steps, elements] = real_sizes<3>(setting, {"ranks", "micro_steps", "elements"});
  const double update = applied(setting) ? 24 * elements : 0;
  return {4 * ranks * steps * elements + update, ranks * elements * (2 * steps + 2 + (applied(setting) ? 12 : 0))};
}

std::string ranks_differ(const NamedTensors&, const NamedTensors& outputs, const Setting&) {
  if (!outputs["equal"].all().item<bool>()) return "a rank has other parameters than rank 0";
  return outputs["status"].eq(outputs["status"][0]).all().item<bool>() ? "" : "ranks decide differently about a window";
}

std::string moved_though_skipped(const NamedTensors& inputs, const NamedTensors& outputs, const Setting&) {
  if (outputs["status"][0].item<std::int64_t>() == static_cast<std::int64_t>(WindowStatus::kApplied)) return "";
  for (const char* name : {"parameters", "first_moment", "second_moment"})
    if (!inputs[name].equal(outputs[name])) return std::string(name) + " moved in a window that was skipped";
  return "";
}

Relation same_without_a_group() {
  return {"one rank is as no data parallelism", [](Setting setting) {
            if (setting.size("ranks") == 1) setting.input_case.options["no_group"] = setting.on("no_group") ? 0 : 1;
            return setting;
          }};
}

std::vector<Refusal> refusals() {
  return {{"rows below 0", [](NamedTensors& inputs, Setting&) { integers(inputs["rows"])[0] = -1; },
           ErrorKind::kOutOfRange, "rows"},
          {"no rows at all", [](NamedTensors& inputs, Setting&) { inputs["rows"].zero_(); }, ErrorKind::kOutOfRange,
           "rows"},
          {"a count below 0", [](NamedTensors& inputs, Setting&) { integers(inputs["counts"])[0] = -1; },
           ErrorKind::kOutOfRange, "counts"},
          {"a count that no training reaches",
           [](NamedTensors& inputs, Setting&) { integers(inputs["counts"])[1] = kMostUpdates + 1; },
           ErrorKind::kOutOfRange, "counts"},
          {"offsets that begin late", [](NamedTensors& inputs, Setting&) { ++integers(inputs["offsets"])[0]; },
           ErrorKind::kOutOfRange, "offsets"}};
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting&) { check_update_counts(inputs["counts"]); };
  spec.proof = {{"dispatches", "", baseline_dispatches, optimized_dispatches}};
  spec.cost = cost;
  spec.invariants = {{"all ranks have the same bits", ranks_differ},
                     {"what is skipped moves nothing", moved_though_skipped}};
  spec.relations = {same_without_a_group()};
  spec.refusals = refusals();
  return spec;
}

}  // namespace twinbench::energy_flow::data_parallel

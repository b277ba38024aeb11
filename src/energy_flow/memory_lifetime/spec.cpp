// energy_flow.memory_lifetime (C27): micro-steps of a recurrence under a budget of bytes, and what lives how long.
#include <algorithm>

#include "src/energy_flow/common/lifetime_work.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::memory_lifetime {
namespace {

// Flows are carried `steps` steps from a state of zeros by the carrier's recurrent layers, without biases. Loss of a
// micro-step: the sum of squares of the top layer's last state less the target; half its mean over flows and window is
// descended, an update a window of `accumulation` micro-steps, fewer at the end.
Signature signature() {
  const Tolerance parameters{Tolerance::Kind::kBound, {1e-4, 1e-5}, {1e-4, 1e-5}, "C24"};
  const Tolerance loss{Tolerance::Kind::kBound, {1e-4, 1e-6}, {1e-4, 1e-6}, "C24"};
  const Tolerance measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  const auto result = [](const char* name, const char* shape, const Tolerance& tolerance) {
    return output(name, shape, tolerance).batch(std::nullopt);
  };
  const auto batches = [](const char* name, Draw draw) {
    return data(name, "micro_steps, flows, hidden", draw).batch(std::nullopt).without_gradient();
  };
  return {
      .derived = {{"work_columns", Expression(std::to_string(std::int64_t{kWorkColumns}))}},
      .inputs = {state("weight_input", "layers, 3 * hidden, hidden", normal(1, 0.3)).batch(std::nullopt),
                 state("weight_hidden", "layers, 3 * hidden, hidden", normal(2, 0.3)).batch(std::nullopt),
                 batches("input", from_case(3)), batches("target", uniform(4, -1, 1))},
      .outputs = {result("weight_input", "layers, 3 * hidden, hidden", parameters).advanced(),
                  result("weight_hidden", "layers, 3 * hidden, hidden", parameters).advanced(),
                  result("loss", "micro_steps", loss), result("work", "work_columns", measured).of(Element::kInt64)},
  };
}

// Tapes that are held when micro-step i goes back, its own included.
std::int64_t tapes_at(const Setting& s, std::int64_t i) {
  return 1 + (s.on("attached_storage") ? i : s.on("retained_tape") ? i % s.size("accumulation") : 0);
}

// A micro-step takes 12 tensors a layer and step for its tape, two of them of three gates, and one a layer for the
// states of zeros; beside them a difference, an adjoint a layer, and what one layer's step back needs; and its batch.
// A pool that keeps its blocks takes as many from the driver as are held at once, one that is trimmed takes all again.
std::int64_t allocations(const Setting& s) {
  const std::int64_t n = s.size("micro_steps"), layers = s.size("layers"), steps = s.size("steps");
  const std::int64_t kept = layers + 10 * steps * layers, kept_wide = 2 * steps * layers;
  const std::int64_t loose = 1 + layers + (steps > 0 ? 8 : 0), loose_wide = steps > 0 ? 2 : 0;
  if (s.on("trim_every_step")) return n * (kept + kept_wide + loose + loose_wide + 2);
  std::int64_t most = 0, most_wide = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    // A tape holds what its first layer took in.
    const std::int64_t held = steps > 0 ? tapes_at(s, i) : 1,
                       batches = s.on("resident_batches") ? 2 * (i + 1) : 1 + held;
    most = std::max(most, tapes_at(s, i) * kept + loose + batches);
    most_wide = std::max(most_wide, tapes_at(s, i) * kept_wide + loose_wide);
  }
  return most + most_wide;
}

// Every eighth step all tapes that are held are looked at.
std::int64_t reads(const Setting& s) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; s.on("host_scan") && i < s.size("micro_steps"); ++i)
    count += s.size("steps") / 8 * tapes_at(s, i);
  return count;
}

// Batches once; weights read and written; both products of a layer forward, and back by what came in and by weights,
// but not to the batch.
Cost cost(const Setting& s) {
  const auto [n, flows, hidden, layers, steps] =
      real_sizes<5>(s, {"micro_steps", "flows", "hidden", "layers", "steps"});
  const double weights = 6 * layers * hidden * hidden;
  return {8 * n * flows * hidden + 8 * weights, n * flows * (steps * weights * (6 - 1 / layers) + 2 * hidden)};
}

Relation policy(const char* name, std::vector<std::pair<const char*, double>> values) {
  return {name, [values](Setting s) {
            for (const auto& [option, value] : values) s.input_case.options[option] = value;
            return s;
          }};
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.proof = {{"allocations", "", allocations, nothing}, {"scalar_reads", "", reads, nothing}};
  spec.cost = cost;
  spec.relations = {policy("no sin at all", {{"trim_every_step", 0},
                                             {"resident_batches", 0},
                                             {"retained_tape", 0},
                                             {"attached_storage", 0},
                                             {"host_scan", 0},
                                             {"reset_peak", 0}}),
                    policy("trimmed after every micro-step", {{"trim_every_step", 1}, {"attached_storage", 0}}),
                    policy("a budget that suffices", {{"budget", 0x1p40}}),
                    policy("never cleaned up", {{"memory_cleanup_interval", 0}})};
  spec.refusals = {{"a budget smaller than the parameters",
                    [](NamedTensors&, Setting& s) { s.input_case.options["budget"] = 16; }, ErrorKind::kOutOfMemory,
                    "parameters"}};
  return spec;
}

}  // namespace twinbench::energy_flow::memory_lifetime

// Pairs the variants, keeps every sample, checks what the timed runs computed and adds the distance from the floor.
#include "harness/bench/twin_timing.h"

#include <ATen/ATen.h>

#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "harness/bench/timed_answers.h"
#include "harness/bench/twin_rows.h"
#include "harness/compare/inputs.h"
#include "harness/timing/null_comparison.h"
#include "harness/timing/paired.h"
#include "harness/timing/record.h"

namespace twinbench {
namespace {

using nlohmann::json;

struct TimedVariant {
  Cell cell;
  JudgedVariant judged;
  std::string wrong;  // the rule that its answers broke, and how
  std::vector<double> samples;
  std::int64_t iterations = 1;

  Runnable& runnable() const { return *judged.copies().front(); }
};

Side side_of(const TimedVariant& timed) {
  Side side;
  side.name = timed.cell.name();
  side.run = [runnable = &timed.runnable()] { runnable->run(); };
  return side;
}

json row_of(const TimedVariant& timed, const Cost& cost, const std::vector<Ceiling>& ceilings) {
  json row = timing_row(timed.cell, timed.cell.component->spec.regime, cost, timed.samples, timed.iterations);
  if (!timed.samples.empty())
    judge_against_floor(row, timed.cell, cost, ceilings, last_level_cache_bytes(), measure_cpu_ceiling);
  if (!timed.wrong.empty()) reject(row, timed.wrong);
  return row;
}

PairedOptions paired_options(const TwinTimingOptions& options) {
  PairedOptions paired;
  paired.max_pairs = options.max_pairs;
  paired.time_budget_s = options.seconds;
  paired.target_half_width = options.target_half_width;
  paired.seed = options.seed;
  paired.clock_quality = options.clock;
  // Slow baselines take one run a sample: many pairs tell more than long samples.
  paired.sample.maximum_sample_s = 0.05;
  return paired;
}

}  // namespace

std::string Twin::name() const {
  return component->spec.id() + "/" + (device == c10::DeviceType::CUDA ? "cuda" : "cpu") + "/" + to_string(dtype) +
         "/" + input_case->name;
}

Cell Twin::cell(Variant variant) const { return {component, variant, device, dtype, input_case}; }

std::vector<Variant> Twin::variants() const {
  std::vector<Variant> variants = {Variant::kBaseline, Variant::kOptimized};
  if (component->library && input_case->pass == Pass::kForward) variants.push_back(Variant::kLibrary);
  return variants;
}

std::vector<Twin> twins_of(const std::vector<Cell>& cells) {
  std::vector<Twin> twins;
  std::set<std::string> seen;
  for (const auto& cell : cells) {
    const Twin twin{cell.component, cell.device, cell.dtype, cell.input_case};
    if (cell.input_case->timed && seen.insert(twin.name()).second) twins.push_back(twin);
  }
  return twins;
}

json time_twin(const Twin& twin, const TwinTimingOptions& options, const std::vector<Ceiling>& ceilings) {
  const auto setting = twin.cell(Variant::kBaseline).setting();
  JudgingTime judging;
  std::optional<TimedAnswers> answers;
  judging.spend([&] { answers.emplace(*twin.component, setting, options.seed); });
  std::map<Variant, TimedVariant> timed;
  for (const auto variant : twin.variants()) {
    const auto cell = twin.cell(variant);
    auto& one = timed.emplace(variant, TimedVariant{cell, JudgedVariant(variant, cell.device, *answers), {}, {}, 1})
                    .first->second;
    judging.spend([&] {
      if (variant == Variant::kBaseline) answers->require_another_answer(one.judged.first());
      one.wrong = one.judged.judge_before();
    });
  }
  json result = {{"timings", json::array()}, {"speedups", json::array()}};
  const auto compare = [&](Variant from, Variant to) {
    const auto paired = measure_pair(side_of(timed.at(from)), side_of(timed.at(to)), paired_options(options));
    for (auto [variant, samples, iterations] :
         {std::tuple{from, &paired.samples_a, paired.iterations_a}, {to, &paired.samples_b, paired.iterations_b}})
      if (timed.at(variant).samples.empty()) {
        timed.at(variant).samples = *samples;
        timed.at(variant).iterations = iterations;
      }
    return paired;
  };
  std::vector<std::tuple<Variant, Variant, PairedResult>> comparisons;
  comparisons.emplace_back(Variant::kBaseline, Variant::kOptimized, compare(Variant::kBaseline, Variant::kOptimized));
  if (timed.count(Variant::kLibrary))
    comparisons.emplace_back(Variant::kLibrary, Variant::kOptimized, compare(Variant::kLibrary, Variant::kOptimized));

  const Cost cost = twin.component->spec.cost ? twin.component->spec.cost(setting) : Cost{};
  for (auto& [variant, one] : timed) {
    judging.spend([&] {
      if (one.wrong.empty()) one.wrong = one.judged.judge_after();
    });
    result["timings"].push_back(row_of(one, cost, ceilings));
  }
  for (const auto& [from, to, paired] : comparisons) {
    auto row = speedup_row(twin, from, to, twin.component->spec.regime, paired);
    for (const auto variant : {from, to})
      if (const TimedVariant& one = timed.at(variant); !one.wrong.empty()) reject_speedup(row, one.cell, one.wrong);
    result["speedups"].push_back(std::move(row));
  }
  result["judging_s"] = judging.seconds();
  return result;
}

json null_test_row(const std::vector<Twin>& twins, const TwinTimingOptions& options) {
  NullTest null;
  for (const auto& twin : twins) {
    const auto cell = twin.cell(Variant::kOptimized);
    const auto setting = cell.setting();
    const auto inputs =
        placed_inputs(generated_inputs(twin.component->spec, setting, options.seed), setting.dtype, setting.device);
    const auto runnable = twin.component->make(Variant::kOptimized, inputs, setting);
    runnable->run();
    Side side;
    side.name = cell.name();
    side.run = [&] { runnable->run(); };
    null.add(cell.name(), measure_pair(side, side, paired_options(options)));
  }
  return to_json(null);
}

}  // namespace twinbench

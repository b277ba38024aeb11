// Pairs the variants, keeps every sample, checks what the timed runs computed and adds the distance from the floor.
#include "harness/bench/twin_timing.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "harness/bench/judging_time.h"
#include "harness/bench/operator_share.h"
#include "harness/bench/timed_answers.h"
#include "harness/bench/twin_rows.h"
#include "harness/bench/work_watch.h"
#include "harness/compare/inputs.h"
#include "harness/memory/global_state.h"
#include "harness/runner/share.h"
#include "harness/runner/told_error.h"
#include "harness/timing/null_comparison.h"
#include "harness/timing/paired.h"
#include "harness/timing/processor_time.h"
#include "harness/timing/record.h"

namespace twinbench {
namespace {

using nlohmann::json;

struct TimedVariant {
  Cell cell;
  std::optional<JudgedVariant> judged;
  std::string wrong;   // the rule that it broke, and how
  std::string failed;  // what it threw
  std::vector<double> samples;
  std::int64_t iterations = 1;
  json beside = nullptr;   // its time beside operators, where it is written in them
  double unwatched_s = 0;  // of one of its runs by itself, then
  std::size_t taken = 0;   // samples, calibration and warm-up included

  // What it throws is its own failure, whoever called.
  template <typename Work>
  void guarded(const Work& work) {
    try {
      work();
    } catch (const std::exception& error) {
      failed = told(error);
      throw;
    }
  }
  void attempt(const std::function<void()>& work) {
    if (!failed.empty()) return;
    try {
      guarded(work);
    } catch (const std::exception&) {  // kept in `failed`
    }
  }
};

constexpr double kJudging_s = 600, kOverrun = 2;              // calibration and a last pair beside a budget
constexpr std::size_t kCopies = 2;                            // sets of addresses of what is judged fast
constexpr std::uint64_t kFirstJudged = 7, kJudgedWithin = 6;  // a sample of these many is judged: slow twins take few

Side side_of(TimedVariant& timed, std::uint64_t draw, JudgingTime& judging) {
  Side side;
  side.name = timed.cell.name();
  side.run = [&timed] { timed.guarded([&] { timed.judged->timed_run(); }); };
  side.prepare = [&timed, &judging, judged_sample = kFirstJudged + draw % kJudgedWithin] {
    timed.judged->next_copy();
    ++timed.taken;
    if (timed.wrong.empty() && timed.taken == judged_sample)
      timed.guarded([&] { judging.spend("during", [&] { timed.wrong = timed.judged->judge_while(); }); });
  };
  return side;
}

json row_of(const TimedVariant& timed, const Cost& cost, const std::vector<Ceiling>& ceilings) {
  json row = timing_row(timed.cell, timed.cell.component->spec.regime, cost, timed.samples, timed.iterations);
  if (!timed.samples.empty())
    judge_against_floor(row, timed.cell, cost, ceilings, last_level_cache_bytes(), measure_cpu_ceiling);
  if (!timed.beside.is_null()) row["beside_operators"] = timed.beside;
  if (!timed.wrong.empty()) reject(row, timed.wrong);
  if (!timed.failed.empty()) {
    row["verdict"] = "error";
    row["reason"] = timed.failed;
  }
  return row;
}

// The rules that look at the process instead of the answers. `before`: the process before the variant was made.
std::string broken_beside_answers(TimedVariant& timed, const GlobalState& before, std::uint64_t seed) {
  if (const auto changed = GlobalState::now().changed_since(before); !changed.empty())
    return "global_state: it changes: " + changed;
  const auto idle = slept([&] { timed.judged->timed_run(); });
  if (!idle.empty()) return "sleeps: " + idle;
  if (timed.cell.variant == Variant::kOptimized) return "";  // its own loops are what it is for
  const BesideOperators beside = beside_operators(timed.cell, *timed.judged->copies().front(), seed);
  timed.beside = to_json(beside);
  timed.unwatched_s = beside.timed.unwatched_s;
  const std::string padding = beside.padding();
  return padding.empty() ? "" : "padded: " + padding;
}

// The quickest of some more runs, in the processor's time, less what new memory costs, which a sin may be to keep.
double least_seconds(Runnable& runnable, bool starts_over) {
  constexpr int kMostRuns = 10;
  constexpr double kEnough_s = 0.3;
  double least_s = std::numeric_limits<double>::infinity(), spent_s = 0;
  for (int run = 0; run < kMostRuns && (run < 2 || spent_s < kEnough_s); ++run) {
    if (starts_over) runnable.start_over();
    const double seconds = seconds_of_run(runnable, thread_seconds);
    least_s = std::min(least_s, seconds);
    spent_s += seconds;
  }
  return least_s;
}

// Runs by themselves start over each time; timed ones go on from each other. Who is slow there alone was so in every
// sample, and still is. A slow moment of the machine is no slow variant: where it looks like one, another runnable that
// starts over tells by turns what a run by itself takes now.
std::string slower_when_timed(TimedVariant& timed, std::uint64_t seed) {
  constexpr int kMostTries = 6;
  constexpr double kSlower = 2, kShort_s = 2e-4;
  if (timed.unwatched_s == 0) return "";
  Runnable& runnable = *timed.judged->copies().front();
  std::unique_ptr<Runnable> alone;
  double alone_s = timed.unwatched_s, on_s = 0;
  for (int tried = 0; tried < kMostTries; ++tried) {
    on_s = least_seconds(runnable, false);
    if (on_s <= kSlower * alone_s + kShort_s) return "";
    if (!alone) {
      const Setting setting = timed.cell.setting();
      const NamedTensors generated = generated_inputs(timed.cell.component->spec, setting, seed);
      alone = timed.cell.component->make(timed.cell.variant, placed_inputs(generated, setting.dtype, setting.device),
                                         setting);
    }
    alone_s = least_seconds(*alone, true);
  }
  char text[120];
  std::snprintf(text, sizeof text, "padded: behind timed runs one takes %.3g s at least, and %.3g s by itself", on_s,
                alone_s);
  return text;
}

}  // namespace

std::uint64_t order_seed(const TwinTimingOptions& options) {
  return options.sample.empty() ? options.seed : options.seed ^ name_hash(options.sample + " order of pairs");
}

PairedOptions paired_options(const TwinTimingOptions& options) {
  PairedOptions paired;
  paired.max_pairs = options.max_pairs;
  paired.time_budget_s = options.seconds;
  paired.interval_budget_s = options.interval_seconds;
  paired.target_half_width = options.target_half_width;
  paired.seed = order_seed(options);
  paired.clock_quality = options.clock;
  paired.sample.maximum_sample_s = options.longest_sample_s;
  return paired;
}

double needed_seconds(const Twin& twin, const TwinTimingOptions& options) {
  const auto comparisons = static_cast<double>(twin.variants().size() - 1);
  return kJudging_s + kOverrun * comparisons * std::max(options.seconds, options.interval_seconds);
}

std::string Twin::name() const {
  return component->spec.id() + "/" + (device == c10::DeviceType::CUDA ? "cuda" : "cpu") + "/" + to_string(dtype) +
         "/" + input_case->name;
}

Cell Twin::cell(Variant variant) const { return {component, variant, device, dtype, input_case}; }

std::vector<Variant> Twin::variants() const {
  std::vector<Variant> variants = {Variant::kBaseline, Variant::kOptimized};
  if (component->library) variants.push_back(Variant::kLibrary);
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
  const GlobalState before = GlobalState::now();
  JudgingTime judging;
  std::optional<TimedAnswers> answers;
  judging.spend("oracle", [&] { answers.emplace(*twin.component, setting, options.seed); });
  std::map<Variant, TimedVariant> timed;
  const auto set_up = [&](Variant variant) {
    const auto cell = twin.cell(variant);
    auto& one = timed[variant];
    one.cell = cell;
    one.attempt([&] {
      // Others that knew their inputs' addresses would only make the optimized variant look slower.
      one.judged.emplace(variant, cell.device, *answers, variant == Variant::kOptimized ? kCopies : 1, true);
      judging.spend("before", [&] {
        if (variant == Variant::kBaseline) answers->require_another_answer(one.judged->first());
        one.wrong = one.judged->judge_before();
      });
      judging.spend("beside", [&] {
        if (one.wrong.empty()) one.wrong = broken_beside_answers(one, before, options.seed);
      });
    });
  };
  // The last judgement of a variant, after which its memory is free.
  const auto finish = [&](Variant variant) {
    auto& one = timed.at(variant);
    one.attempt([&] {
      judging.spend("after", [&] {
        if (one.wrong.empty()) one.wrong = slower_when_timed(one, options.seed);
        if (one.wrong.empty()) one.wrong = one.judged->judge_after();
        if (one.wrong.empty())
          if (const auto changed = GlobalState::now().changed_since(before); !changed.empty())
            one.wrong = "global_state: changed while timed: " + changed;
      });
    });
    one.judged.reset();
  };
  json result = {{"timings", json::array()}, {"speedups", json::array()}};
  SteadyClock steady;
  Clock& clock = options.time ? *options.time : steady;
  const auto compare = [&](Variant from, Variant to) {
    PairedResult paired;
    if (!timed.at(from).failed.empty() || !timed.at(to).failed.empty()) return paired;
    ClockWatch watch(clock);
    try {
      const std::uint64_t draw = name_hash(options.sample + " judged " + twin.name());
      paired = measure_pair(side_of(timed.at(from), draw, judging), side_of(timed.at(to), draw, judging),
                            paired_options(options), clock);
    } catch (const std::exception&) {
      if (timed.at(from).failed.empty() && timed.at(to).failed.empty()) throw;
      return PairedResult();
    }
    const std::string apart = watch.broken();
    for (auto [variant, samples, iterations] :
         {std::tuple{from, &paired.samples_a, paired.iterations_a}, {to, &paired.samples_b, paired.iterations_b}}) {
      TimedVariant& one = timed.at(variant);
      if (one.samples.empty()) {
        one.samples = *samples;
        one.iterations = iterations;
      }
      if (one.wrong.empty() && !apart.empty()) one.wrong = "clock: " + apart;
    }
    return paired;
  };
  // Two variants at a time: all three of a large model do not fit beside its reference.
  std::vector<std::tuple<Variant, Variant, PairedResult>> comparisons;
  set_up(Variant::kBaseline);
  set_up(Variant::kOptimized);
  for (const auto variant : twin.variants()) {
    if (variant == Variant::kOptimized) continue;
    if (variant != Variant::kBaseline) set_up(variant);
    comparisons.emplace_back(variant, Variant::kOptimized, compare(variant, Variant::kOptimized));
    finish(variant);
  }
  finish(Variant::kOptimized);

  const Cost cost = twin.component->spec.cost ? twin.component->spec.cost(setting) : Cost{};
  for (auto& [variant, one] : timed) {
    result["timings"].push_back(row_of(one, cost, ceilings));
    const auto& row = result["timings"].back();
    if (row["verdict"] == "fail" && one.wrong.empty()) one.wrong = row["reason"];  // below its floor: no speedup either
  }
  for (const auto& [from, to, paired] : comparisons) {
    auto row = speedup_row(twin, from, to, twin.component->spec.regime, paired);
    for (const auto variant : {from, to}) {
      const TimedVariant& one = timed.at(variant);
      if (!one.wrong.empty()) reject_speedup(row, one.cell, one.wrong);
      if (!one.failed.empty() && row["verdict"] != "rejected")
        withdraw(row, to_string(variant) + " failed: " + one.failed);
    }
    result["speedups"].push_back(std::move(row));
  }
  judging.add_to(result);
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
    side.run = [&] {
      runnable->run();
      runnable->outputs();
    };
    null.add(cell.name(), measure_pair(side, side, paired_options(options)));
  }
  return to_json(null);
}

}  // namespace twinbench

// Comparisons on a device, what spoils them, and the rows they become.
#include "harness/device/bench/device_twin_timing.h"

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "harness/bench/judging_time.h"
#include "harness/bench/twin_rows.h"
#include "harness/device/bench/device_variant.h"
#include "harness/timing/null_comparison.h"
#include "harness/timing/record.h"
#include "harness/timing/statistics.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

using nlohmann::json;

// A held window must rise above event resolution and drift; a cold one is a single run, so there are many short
// samples.
constexpr double kShortestSample = 5e-4, kLongestSample = 0.05, kWarmUp = 0.5;  // seconds
constexpr std::int64_t kMostColdWindows = 256;

struct ChosenRegime {
  Regime regime = Regime::kHot;
  std::size_t copies = 1;
  std::string reason;  // why it is not the one that was asked for
};

ChosenRegime choose_regime(const Twin& twin, const DeviceTimingOptions& options, const NamedTensors& generated,
                           BenchDevice& device) {
  ChosenRegime chosen;
  chosen.regime = options.regime ? *options.regime : regime_named(twin.component->spec.regime);
  if (chosen.regime != Regime::kRotating) return chosen;
  double bytes = 0;
  for (const auto& [name, tensor] : generated) bytes += static_cast<double>(tensor.nbytes());
  chosen.copies = rotating_copies(bytes, device.timer().cache_bytes());
  if (chosen.copies > 0) return chosen;
  return {Regime::kHot, 1,
          "not rotating: too many copies of so small inputs would be needed to exceed the cache twice"};
}

struct MeasuredSide {
  std::vector<KeptSample> kept;
  std::size_t discarded = 0;
};

struct DeviceComparison {
  PairedResult paired;
  DeviceSampling sampling;
  MeasuredSide from, to;
};

PairedOptions paired_options(const TwinTimingOptions& options, const DeviceSampling& sampling,
                             const DeviceSession& session) {
  PairedOptions paired;
  paired.max_pairs = options.max_pairs;
  paired.time_budget_s = options.seconds;
  paired.target_half_width = options.target_half_width;
  paired.seed = order_seed(options);
  const bool wall = sampling.clock == PublishedClock::kHostWall, cold = sampling.regime == Regime::kCold;
  paired.clock_quality = ClockQuality{options.clock.resolution_s, wall ? session.empty_wall_s : session.empty_span_s};
  paired.sample.minimum_sample_s = kShortestSample;
  paired.sample.maximum_sample_s = kLongestSample;
  paired.sample.warm_up_budget_s = kWarmUp;
  paired.sample.maximum_iterations = cold ? kMostColdWindows : sampling.most_iterations;
  if (cold)
    paired.sample.overhead_multiple = 0;  // each run has its own marks: more runs do not lift it above the timer
  return paired;
}

DeviceComparison measured(const DeviceVariant& from, const DeviceVariant& to, const TwinTimingOptions& options,
                          const DeviceSampling& sampling, const DeviceSession& session, BenchDevice& device) {
  DeviceSide a(from.cell().name(), from.runs(), device.timer(), device.host(), sampling);
  DeviceSide b(to.cell().name(), to.runs(), device.timer(), device.host(), sampling);
  DeviceComparison comparison;
  comparison.sampling = sampling;
  comparison.paired = measure_pair(a.side(), b.side(), paired_options(options, sampling, session), device.host());
  comparison.from = {a.last(comparison.paired.samples_a.size()), a.discarded()};
  comparison.to = {b.last(comparison.paired.samples_b.size()), b.discarded()};
  return comparison;
}

DeviceComparison compare(const DeviceVariant& from, const DeviceVariant& to, Regime regime,
                         const TwinTimingOptions& options, const DeviceSession& session, BenchDevice& device) {
  DeviceSampling sampling = decide_sampling(regime, from.counts(), to.counts(), session.hold.works);
  sampling.reference_clock_hz = session.clock_hz;
  try {
    return measured(from, to, options, sampling, session, device);
  } catch (const HoldExpired& expired) {
    DeviceSampling unheld;
    unheld.regime = regime;
    unheld.clock = PublishedClock::kHostWall;
    unheld.hold = false;
    unheld.reference_clock_hz = session.clock_hz;
    unheld.reason = std::string("a run waits for the device where no counter sees it: ") + expired.what();
    return measured(from, to, options, unheld, session, device);
  }
}

bool is_timer_limited(const MeasuredSide& side, const DeviceComparison& comparison, std::int64_t iterations,
                      const DeviceSession& session) {
  if (comparison.sampling.clock == PublishedClock::kDeviceSpan)
    return quality_of(side.kept, session.empty_span_s).timer_limited;
  const double runs = comparison.sampling.regime == Regime::kCold ? 1 : static_cast<double>(iterations);
  std::vector<double> windows;
  for (const KeptSample& sample : side.kept) windows.push_back(runs * sample.wall_s);
  return !windows.empty() && median(windows) < kTimerMultiple * session.empty_wall_s;
}

json megahertz(const std::optional<double>& hertz) { return hertz ? json(*hertz / 1e6) : json(nullptr); }

struct TimedVariant {
  std::unique_ptr<DeviceVariant> variant;
  const DeviceComparison* comparison = nullptr;  // the first one it took part in
  bool is_from = false;
  GraphReplay graph;
  std::string untraced;
  std::string wrong;   // the rule that its answers broke, and how
  std::string broken;  // why else its time is worth nothing

  const MeasuredSide& side() const { return is_from ? comparison->from : comparison->to; }
  const std::vector<double>& samples() const {
    return is_from ? comparison->paired.samples_a : comparison->paired.samples_b;
  }
  std::int64_t iterations() const {
    return is_from ? comparison->paired.iterations_a : comparison->paired.iterations_b;
  }
};

json device_timing_row(const TimedVariant& timed, const Cost& cost, const DeviceSession& session) {
  const DeviceSampling& sampling = timed.comparison->sampling;
  json row = timing_row(timed.variant->cell(), name_of(sampling.regime), cost, timed.samples(), timed.iterations());
  const SampleQuality quality = quality_of(timed.side().kept, session.empty_span_s);
  std::vector<double> spans;
  json clocks = json::array();
  for (const KeptSample& sample : timed.side().kept) {
    spans.push_back(sample.span_s);
    clocks.push_back(megahertz(sample.clock_hz));
  }
  row["clock"] = name_of(sampling.clock);
  row["clock_reason"] = sampling.reason;
  row["gpu_median_s"] = spans.empty() ? json(nullptr) : json(median(spans));
  row["clock_mhz"] = megahertz(quality.clock_hz);
  row["sample_clocks_mhz"] = clocks;
  row["timer_limited"] = is_timer_limited(timed.side(), *timed.comparison, timed.iterations(), session);
  row["discarded"] = timed.side().discarded;
  row["throttled"] = quality.throttled;
  const MeasuredTimes& in_place = timed.variant->in_place();
  row["in_place"] = {{"wall_s", in_place.wall_s},
                     {"span_s", in_place.span_s},
                     {"busy_s", in_place.busy_s ? json(*in_place.busy_s) : json(nullptr)},
                     {"reason", timed.untraced}};
  row["graph_replay_s"] = timed.graph.seconds ? json(*timed.graph.seconds) : json(nullptr);
  row["graph_reason"] = timed.graph.reason;
  return row;
}

// The outputs of before lie where a replay that does nothing leaves them: only its time gives it away.
void reject_impossible_replay(json& row) {
  if (!row["graph_replay_s"].is_number() || !row["impossible_below_s"].is_number() ||
      row["graph_replay_s"] >= row["impossible_below_s"])
    return;
  row["graph_replay_s"] = nullptr;
  row["graph_reason"] = "a replay is faster than the physical floor: the graph does not hold the work";
}

// Work that the published span does not cover: the device was busy for longer.
std::string unseen_work(const TimedVariant& timed, const json& row) {
  const auto& busy_s = timed.variant->in_place().busy_s;
  if (!busy_s || row["clock"] != "gpu_span" || !row["gpu_median_s"].is_number()) return "";
  const double span_s = row["gpu_median_s"];
  if (*busy_s <= 1.02 * span_s + 2e-6) return "";
  return "clocks disagree: " + timed.variant->cell().name() +
         " keeps the device busy for longer than the marked span (another stream)";
}

std::string doubt_about(const TimedVariant& from, const TimedVariant& to, const json& from_row, const json& to_row,
                        const DeviceComparison& comparison, const DeviceSession& session) {
  if (comparison.sampling.regime == Regime::kCold && !session.flush.works)
    return "flush_ineffective: " + session.flush.reason;
  for (const auto* row : {&from_row, &to_row})
    if ((*row)["timer_limited"])
      return "timer_limited: " + (*row)["cell"].get<std::string>() + " takes less than 20 empty samples";
  if (const std::string clock = clock_problem(comparison.from.kept, comparison.to.kept); !clock.empty()) return clock;
  if (const std::string unseen = unseen_work(from, from_row); !unseen.empty()) return unseen;
  return unseen_work(to, to_row);
}

void add_decomposition(json& speedup, const DeviceVariant& from, const DeviceVariant& to) {
  const Decomposition parts = decompose(from.in_place(), to.in_place());
  const auto factor = [](const std::optional<double>& value) { return value ? json(*value) : json(nullptr); };
  speedup["decomposition"] = {{"wall", factor(parts.wall)},
                              {"host", factor(parts.host)},
                              {"launch_gap", factor(parts.launch_gap)},
                              {"kernel", factor(parts.kernel)}};
  speedup["decomposition_reason"] = parts.reason;
}

Ceiling ceiling_now(const std::string& name, BenchDevice& device) {
  for (const auto& work : device.ceiling_work(false))
    if (work.name == name) return measure_device_ceiling(work, device.timer(), device.host(), device.name());
  throw Error(ErrorKind::kUnknownName, "ceiling", name, "the device brings no work of that name");
}

}  // namespace

json time_device_twin(const Twin& twin, const DeviceTimingOptions& options, const DeviceSession& session,
                      const std::vector<Ceiling>& ceilings, BenchDevice& device) {
  Setting setting = twin.cell(Variant::kBaseline).setting();
  setting.device = device.tensors();
  JudgingTime judging;
  std::optional<TimedAnswers> answers;
  judging.spend("oracle", [&] { answers.emplace(*twin.component, setting, options.twin.seed); });
  const ChosenRegime chosen = choose_regime(twin, options, answers->own(), device);
  std::map<Variant, TimedVariant> timed;
  for (const Variant variant : twin.variants()) {
    TimedVariant& one = timed[variant];
    one.variant = std::make_unique<DeviceVariant>(twin.cell(variant), *answers, chosen.copies, device);
    judging.spend("before", [&] {
      if (variant == Variant::kBaseline) answers->require_another_answer(one.variant->judged().first());
      one.wrong = one.variant->judged().judge_before();
    });
  }

  std::vector<std::tuple<Variant, Variant, std::unique_ptr<DeviceComparison>>> comparisons;
  for (const Variant from : {Variant::kBaseline, Variant::kLibrary}) {
    if (!timed.count(from)) continue;
    auto comparison = std::make_unique<DeviceComparison>(compare(
        *timed.at(from).variant, *timed.at(Variant::kOptimized).variant, chosen.regime, options.twin, session, device));
    if (!chosen.reason.empty()) comparison->paired.notes.push_back(chosen.reason);
    for (auto* one : {&timed.at(from), &timed.at(Variant::kOptimized)})
      if (!one->comparison) {
        one->comparison = comparison.get();
        one->is_from = one == &timed.at(from);
      }
    comparisons.emplace_back(from, Variant::kOptimized, std::move(comparison));
  }

  std::vector<DeviceVariant*> variants;
  for (auto& [variant, one] : timed) {
    judging.spend("after", [&] {
      if (one.wrong.empty()) one.wrong = one.variant->judge_after();
    });
    variants.push_back(one.variant.get());
  }
  DeviceVariant::measure_in_place(variants, chosen.regime);
  for (auto& [variant, one] : timed)
    one.graph = one.variant->measure_graph_replay(one.comparison->sampling, one.iterations());
  for (auto& [variant, one] : timed) one.untraced = one.variant->trace_busy_time(chosen.regime);

  const Cost cost = twin.component->spec.cost ? twin.component->spec.cost(setting) : Cost{};
  json result = {{"timings", json::array()}, {"speedups", json::array()}};
  std::map<Variant, json> rows;
  for (auto& [variant, one] : timed) {
    json row = device_timing_row(one, cost, session);
    if (!one.samples().empty()) {
      const auto again = [&](const std::string& name) { return ceiling_now(name, device); };
      one.broken = judge_against_floor(row, one.variant->cell(), cost, ceilings, device.timer().cache_bytes(), again);
      reject_impossible_replay(row);
    }
    if (!one.wrong.empty()) reject(row, one.wrong);
    result["timings"].push_back(row);
    rows[variant] = std::move(row);
  }
  for (const auto& [from, to, comparison] : comparisons) {
    json row = speedup_row(twin, from, to, name_of(chosen.regime), comparison->paired);
    row["clock"] = name_of(comparison->sampling.clock);
    row["clock_reason"] = comparison->sampling.reason;
    row["clock_mhz"] = megahertz(quality_of(comparison->to.kept, session.empty_span_s).clock_hz);
    add_decomposition(row, *timed.at(from).variant, *timed.at(to).variant);
    if (const std::string broken = timed.at(from).broken + timed.at(to).broken; !broken.empty())
      withdraw(row, broken);
    else if (const std::string why =
                 doubt_about(timed.at(from), timed.at(to), rows.at(from), rows.at(to), *comparison, session);
             !why.empty())
      doubt(row, why);
    for (const Variant variant : {from, to})
      if (!timed.at(variant).wrong.empty())
        reject_speedup(row, timed.at(variant).variant->cell(), timed.at(variant).wrong);
    result["speedups"].push_back(std::move(row));
  }
  judging.add_to(result);
  return result;
}

json device_null_test_row(const std::vector<Twin>& twins, const DeviceTimingOptions& options,
                          const DeviceSession& session, BenchDevice& device) {
  NullTest null;
  for (const auto& twin : twins) {
    const Cell cell = twin.cell(Variant::kOptimized);
    Setting setting = cell.setting();
    setting.device = device.tensors();
    const TimedAnswers answers(*twin.component, setting, options.twin.seed);
    const ChosenRegime chosen = choose_regime(twin, options, answers.own(), device);
    const DeviceVariant variant(cell, answers, chosen.copies, device);
    null.add(cell.name(), compare(variant, variant, chosen.regime, options.twin, session, device).paired);
  }
  return to_json(null);
}

}  // namespace twinbench

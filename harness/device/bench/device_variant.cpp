// Set-up and the passes beside the paired samples.
#include "harness/device/bench/device_variant.h"

#include <exception>

#include "harness/counters/operator_counts.h"
#include "harness/device/device_sample.h"
#include "harness/timing/statistics.h"
#include "src/common/first_line.h"

namespace twinbench {
namespace {

constexpr std::size_t kInPlaceSamples = 15, kReplaySamples = 15, kTracedRuns = 5;
constexpr double kPassBudget = 3;        // seconds: a pass over a slow baseline ends with fewer samples, one at least
constexpr double kLongestWarmed = 0.01;  // seconds: a longer run fills the caches itself

// Not a CounterScope: that leaves its wrapper around the CPU allocator behind, beside the samples that follow.
class OperatorCounting {
 public:
  OperatorCounting() { start_operator_counting(true); }
  ~OperatorCounting() { stop_operator_counting(); }
  OperatorCounting(const OperatorCounting&) = delete;
  OperatorCounting& operator=(const OperatorCounting&) = delete;
};

RunCounts counted(Runnable& runnable) {
  const OperatorCounting counting;
  const OperatorTotals before = operator_totals();
  runnable.run();
  const OperatorTotals after = operator_totals();
  RunCounts counts;
  counts.sync_calls = after.sync_calls - before.sync_calls;
  counts.scalar_reads = after.scalar_reads - before.scalar_reads;
  counts.device_copies = after.device_copies - before.device_copies;
  counts.dispatches = after.dispatches - before.dispatches;
  counts.copies = after.copies - before.copies;
  return counts;
}

class Budget {
 public:
  explicit Budget(Clock& clock) : clock_(clock), start_(clock.now()) {}
  bool spent() const { return seconds_between(start_, clock_.now()) > kPassBudget; }

 private:
  Clock& clock_;
  std::int64_t start_;
};

}  // namespace

DeviceVariant::DeviceVariant(const Cell& cell, const TimedAnswers& answers, std::size_t copies, BenchDevice& device)
    : cell_(cell),
      device_(device),
      judged_(cell.variant, cell.device, answers, copies),
      counts_(counted(*judged_.copies().front())) {}

std::vector<std::function<void()>> DeviceVariant::runs() const {
  std::vector<std::function<void()>> runs;
  for (const auto& copy : copies())
    runs.push_back([runnable = copy.get()] {
      runnable->run();
      runnable->outputs();  // what is left to do there belongs to the run
    });
  return runs;
}

std::string DeviceVariant::judge_after() {
  device_.timer().synchronize();
  return judged_.judge_after();
}

void DeviceVariant::measure_in_place(const std::vector<DeviceVariant*>& variants, Regime regime) {
  const Budget budget(variants.front()->device_.host());
  std::vector<std::vector<double>> walls(variants.size()), spans(variants.size());
  for (std::size_t round = 0; round <= kInPlaceSamples && (round < 2 || !budget.spent()); ++round)
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const auto& copies = variants[i]->copies();
      BenchDevice& device = variants[i]->device_;
      const auto run = [&] { copies[round % copies.size()]->run(); };
      // Hot: what lies in the caches is this variant's own, not the other's.
      if (regime == Regime::kHot && (walls[i].empty() || walls[i].back() < kLongestWarmed)) run();
      const DeviceSample sample =
          take_device_sample(device.timer(), device.host(), run, {regime == Regime::kCold, false});
      if (round == 0) continue;  // finds what another pass left behind
      walls[i].push_back(sample.wall_s);
      spans[i].push_back(sample.span_s);
    }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    variants[i]->in_place_.wall_s = median(walls[i]);
    variants[i]->in_place_.span_s = median(spans[i]);
  }
}

GraphReplay DeviceVariant::measure_graph_replay(const DeviceSampling& sampling, std::int64_t iterations) {
  if (counts_.scalar_reads + counts_.sync_calls + counts_.device_copies > 0)
    return {std::nullopt, "a run waits for the device: no graph can hold it"};
  try {
    std::vector<std::function<void()>> replays;
    for (const auto& run : runs()) replays.push_back(device_.captured(run));
    DeviceSide side(cell_.name() + " as a graph", replays, device_.timer(), device_.host(), sampling);
    const Side sampled = side.side();
    std::vector<double> seconds;
    for (const auto& replay : replays)
      replay();  // the first launch of a graph may wait for the device: not under a hold
    const Budget budget(device_.host());
    for (std::size_t i = 0; i <= kReplaySamples && (i < 2 || !budget.spent()); ++i) {
      const double sample_s = sampled.sample_seconds(iterations) / static_cast<double>(iterations);
      if (i > 0) seconds.push_back(sample_s);
    }
    device_.timer().synchronize();
    if (const std::string wrong = judged_.difference_from_first(); !wrong.empty())
      return {std::nullopt, "a replay computes something else: " + wrong};
    return {median(seconds), ""};
  } catch (const std::exception& refusal) {
    return {std::nullopt, "the run cannot be captured or replayed: " + first_line(refusal.what())};
  }
}

std::string DeviceVariant::trace_busy_time(Regime regime) {
  std::vector<double> busy;
  const Budget budget(device_.host());
  for (std::size_t i = 0; i < kTracedRuns && (i < 1 || !budget.spent()); ++i) {
    if (regime == Regime::kCold) device_.timer().flush_cache();
    device_.timer().synchronize();
    const TracedRun run = device_.traced([&] { copies()[i % copies().size()]->run(); });
    if (!run.busy_s) return run.reason;
    busy.push_back(*run.busy_s);
  }
  in_place_.busy_s = median(busy);
  return "";
}

}  // namespace twinbench

// Growing one shared iteration count until the faster side is long enough, then warming up until times stop falling.
#include "harness/timing/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "src/common/error.h"

namespace twinbench {
namespace {

// What is known of one side while the count grows.
struct Estimate {
  double per_iteration_s = 0;
  double sample_s = 0;
  bool expensive = false;  // a single run already fills a sample: it is not run again to find that out once more
};

std::int64_t count_within(double limit_s, const Estimate& estimate, std::int64_t wanted) {
  if (!(estimate.per_iteration_s * static_cast<double>(wanted) > limit_s)) return wanted;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(limit_s / estimate.per_iteration_s));
}

void time_side(const Side& side, std::int64_t iterations, Clock& clock, Estimate& estimate) {
  estimate.sample_s = take_sample(side, iterations, clock);
  estimate.per_iteration_s = estimate.sample_s / static_cast<double>(iterations);
}

std::int64_t grown(std::int64_t count, double shortest_s, double target_s, std::int64_t maximum) {
  const double factor = shortest_s > 0 ? std::clamp(1.2 * target_s / shortest_s, 1.0, 10.0) : 10.0;
  const double next = std::ceil(static_cast<double>(count) * factor);
  return static_cast<std::int64_t>(
      std::min(static_cast<double>(maximum), std::max(next, static_cast<double>(count + 1))));
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

void warm_up(const Side& a, const Side& b, double budget_s, Clock& clock, Calibration& calibration) {
  constexpr std::size_t kMostRounds = 64;
  double best_a = std::numeric_limits<double>::infinity(), best_b = best_a;
  const std::int64_t start = clock.now();
  int calm_rounds = 0;
  while (calibration.warm_up_rounds < kMostRounds && calm_rounds < 2) {
    const double spent = seconds_between(start, clock.now());
    if (spent + calibration.pair_s > budget_s) break;
    const double sample_a = take_sample(a, calibration.iterations_a, clock);
    const double sample_b = take_sample(b, calibration.iterations_b, clock);
    // The question is whether times still fall, not whether they are quiet: noise must not keep this loop going.
    const bool calm = sample_a >= 0.98 * best_a && sample_b >= 0.98 * best_b;
    calm_rounds = calm ? calm_rounds + 1 : 0;
    best_a = std::min(best_a, sample_a);
    best_b = std::min(best_b, sample_b);
    calibration.pair_s = seconds_between(start, clock.now()) / static_cast<double>(++calibration.warm_up_rounds);
  }
  calibration.settled = calm_rounds >= 2;
  if (!calibration.settled)
    calibration.notes.push_back("warm-up not settled after " + std::to_string(calibration.warm_up_rounds) +
                                " rounds of " + seconds_text(calibration.pair_s));
}

}  // namespace

double take_sample(const Side& side, std::int64_t iterations, Clock& clock) {
  if (side.prepare) side.prepare();
  if (side.sample_seconds) return side.sample_seconds(iterations);
  const std::int64_t start = clock.now();
  for (std::int64_t i = 0; i < iterations; ++i) side.run();
  if (side.finish) side.finish();
  return seconds_between(start, clock.now());
}

Calibration calibrate(const Side& a, const Side& b, const SampleLimits& limits, double overhead_s, Clock& clock) {
  for (const Side* side : {&a, &b})
    if (!side->run && !side->sample_seconds)
      throw Error(ErrorKind::kBadArgument, "side", side->name, "give a run or a sample_seconds function");
  const double floor_s = limits.overhead_multiple * overhead_s;
  const double target_s = std::max(limits.minimum_sample_s, floor_s);
  const double most_s = std::max(limits.maximum_sample_s, target_s);
  Calibration calibration;

  Estimate of_a, of_b;
  time_side(a, 1, clock, of_a);  // the first run of a side is cold: kept only where it is too long to repeat
  time_side(b, 1, clock, of_b);
  of_a.expensive = of_a.per_iteration_s > most_s;
  of_b.expensive = of_b.per_iteration_s > most_s;
  std::int64_t count = 1;
  for (int reached = 0; reached < 2;) {  // twice in a row: one sample stretched by a spike must not end the search
    calibration.iterations_a = count_within(most_s, of_a, count);
    calibration.iterations_b = count_within(most_s, of_b, count);
    if (!of_a.expensive) time_side(a, calibration.iterations_a, clock, of_a);
    if (!of_b.expensive) time_side(b, calibration.iterations_b, clock, of_b);
    const bool a_is_faster = of_a.per_iteration_s <= of_b.per_iteration_s;
    const double shortest_s = a_is_faster ? of_a.sample_s : of_b.sample_s;
    if (shortest_s >= target_s) {
      ++reached;
      continue;
    }
    reached = 0;
    if (count >= limits.maximum_iterations) {
      calibration.too_short = !(shortest_s >= floor_s && shortest_s > 0);
      break;
    }
    count = grown(count, shortest_s, target_s, limits.maximum_iterations);
  }
  calibration.pair_s = of_a.sample_s + of_b.sample_s;
  calibration.shared = calibration.iterations_a == calibration.iterations_b;
  if (!calibration.shared)
    calibration.notes.push_back("separate iteration counts, " + std::to_string(calibration.iterations_a) + " and " +
                                std::to_string(calibration.iterations_b) +
                                ": a shared count would make the slower side's sample longer than " +
                                seconds_text(most_s));
  warm_up(a, b, limits.warm_up_budget_s, clock, calibration);
  return calibration;
}

}  // namespace twinbench

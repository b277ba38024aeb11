// What the host writes down of a sample while its flows live: statistics, the stop rule's state, and how near its
// decisions came to going another way.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "src/energy_flow/common/flow_statistics.h"
#include "src/rounding.h"
#include "src/setting.h"

namespace twinbench::energy_flow::flow_forward {

// The options that decide what becomes of flows.
struct HostRules {
  explicit HostRules(const Setting& s)
      : kill(s.on("boundary")),
        drop(s.on("on_stop")),
        spawn(static_cast<int>(s.option("spawn"))),
        projection_age(static_cast<std::int64_t>(s.option("projection_age"))),
        most_spawned(s.option("most_spawned")),
        theta(s.option("movement_threshold")),
        tau(s.option("gate_threshold")),
        convergence(s.on("convergence_enabled")),
        threshold(s.option("convergence_threshold")),
        min_steps(static_cast<std::int64_t>(s.option("convergence_min_steps"))),
        patience(static_cast<std::int64_t>(s.option("convergence_patience"))),
        max_steps(s.size("max_steps")),
        quota(s.size("quota")),
        width(s.size("width")),
        height(s.size("height")) {}

  const bool kill, drop;
  const int spawn;  // 0 off, 1 movement, 2 gate
  const std::int64_t projection_age;
  const double most_spawned, theta, tau;
  const bool convergence;
  const double threshold;
  const std::int64_t min_steps, patience, max_steps, quota, width, height;

  // Flows of a sample that there can be.
  std::int64_t most_flows() const { return spawn == 0 ? std::min(quota, width * height) : quota; }
  // Children that a flow asks for which moved by `measure`, or whose gate has that value. None of a NaN.
  std::int64_t children(double measure) const {
    if (spawn == 0 || !(measure > (spawn == 1 ? theta : tau))) return 0;
    const double count =
        spawn == 1 ? std::floor(measure / theta) - 1 : std::floor((measure - tau) / (1 - tau) * most_spawned) + 1;
    return static_cast<std::int64_t>(std::min(most_spawned, count));
  }
  // From the measure to the nearest value at which the count changes, in the specification's units.
  double spawn_margin(double measure) const {
    double least = 1;
    for (int i = 0; spawn > 0 && i < most_spawned; ++i) least = std::min(least, std::abs(above(measure, i)));
    return least;
  }
  // Children on that value's other side.
  std::int64_t children_beyond(double measure) const {
    int nearest = 0;
    for (int i = 1; i < most_spawned; ++i)
      if (std::abs(above(measure, i)) < std::abs(above(measure, nearest))) nearest = i;
    return spawn == 0 || most_spawned < 1 ? 0 : above(measure, nearest) > 0 ? nearest : nearest + 1;
  }

 private:
  // How far the measure is above the value from which on a flow has one child more than `i`.
  double above(double measure, int i) const {
    return spawn == 1 ? measure / theta - (i + 2) : measure - (tau + i * (1 - tau) / most_spawned);
  }
};

struct Book {
  std::array<std::int32_t, kStatistics> stats{};
  double margin = 1;
  std::int64_t active = 0, best = 0, stall = 0;

  bool finished() const { return stats[kReason] != 0; }
  void note(double distance) { margin = std::min(margin, std::abs(distance)); }
  std::int64_t completed() const { return stats[kDoneZ0] + stats[kDoneZD] + stats[kProjectedAge]; }

  // The rule before step t; `done` is what has completed, as it was read.
  void look(const HostRules& rules, std::int64_t t, std::int64_t done) {
    enum { kExhausted = 1, kMaxSteps, kThreshold, kPatience };
    int reason = 0;
    if (active == 0) {
      reason = kExhausted;
    } else if (t == rules.max_steps) {
      reason = kMaxSteps;
    } else if (rules.convergence && t >= rules.min_steps) {
      if (static_cast<double>(done) / static_cast<double>(stats[kCreated]) >= rules.threshold) {
        reason = kThreshold;
      } else if (done > best) {
        best = done, stall = 0;
      } else if (best > 0 && ++stall >= rules.patience) {
        reason = kPatience;
      }
    }
    stats[kReason] = reason;
    stats[kSteps] = static_cast<std::int32_t>(t);
  }
};

// The cell along one axis, and how far its quantisation is from a tie, in the unit of 0.5's bound. In the documented
// order, in Real. Of a NaN, which only the harness plants, the cell is decided already.
template <class Real>
std::int64_t cell_along(Real coordinate, std::int64_t extent, Book& book) {
  const Real at = (coordinate + Real(1)) * Real(0.5) * static_cast<Real>(extent - 1);
  const Real nearest = at == at ? std::nearbyint(at) : Real(0);
  const double margin =
      (0.5 - std::abs(static_cast<double>(at - nearest))) / std::max(1.0, static_cast<double>(extent - 1) / 7);
  book.note(margin);
  const auto in_range = [extent](std::int64_t cell) { return std::clamp(cell, std::int64_t{0}, extent - 1); };
  const auto cell = static_cast<std::int64_t>(nearest);
  return decided(in_range(cell), in_range(at > nearest ? cell + 1 : cell - 1), margin);
}

}  // namespace twinbench::energy_flow::flow_forward

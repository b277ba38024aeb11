// Where a speedup comes from: the host, the gaps between kernels, the kernels. A pure function of measured times.
#pragma once

#include <optional>
#include <string>

namespace twinbench {

// Of one run of one side, in seconds, all measured in place (nothing held, nothing traced but `busy_s`).
struct MeasuredTimes {
  double wall_s = 0;             // host: from the first launch until the device is idle
  double span_s = 0;             // device: from the first to the last work of the run
  std::optional<double> busy_s;  // device: union of its kernels and copies; absent where they were not traced
};

// wall = host * launch_gap * kernel, each a ratio of the slower side's figure over the faster side's: above 1 that part
// made `to` faster. Absent factors have their reason.
struct Decomposition {
  std::optional<double> wall;        // wall ratio
  std::optional<double> host;        // of wall / span: time in which the device had nothing of this run
  std::optional<double> launch_gap;  // of span / busy: waiting between kernels
  std::optional<double> kernel;      // of busy
  std::string reason;                // why a factor is absent; empty where none is
};

Decomposition decompose(const MeasuredTimes& from, const MeasuredTimes& to);

}  // namespace twinbench

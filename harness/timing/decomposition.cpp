// The three quotients, and what makes them meaningless.
#include "harness/timing/decomposition.h"

#include <cmath>

namespace twinbench {
namespace {

// Different clocks and different passes: what must not exceed may do so by this share, or by two microseconds.
bool exceeds(double inner_s, double outer_s) { return inner_s > 1.02 * outer_s + 2e-6; }

bool usable(double seconds) { return seconds > 0 && std::isfinite(seconds); }

std::string span_problem(const MeasuredTimes& times, const char* side) {
  if (!usable(times.span_s)) return std::string(side) + ": no device span was measured";
  if (exceeds(times.span_s, times.wall_s))
    return std::string(side) + ": the device span is longer than the wall time around it";
  return "";
}

std::string busy_problem(const MeasuredTimes& times, const char* side) {
  if (!times.busy_s) return std::string(side) + ": the busy time is unknown (nothing was traced)";
  if (!usable(*times.busy_s)) return std::string(side) + ": the device was never busy";
  if (exceeds(*times.busy_s, times.span_s))
    return std::string(side) + ": busy for longer than the stream's span: work on another stream";
  return "";
}

}  // namespace

Decomposition decompose(const MeasuredTimes& from, const MeasuredTimes& to) {
  Decomposition result;
  if (!usable(from.wall_s) || !usable(to.wall_s)) {
    result.reason = "no wall time was measured";
    return result;
  }
  result.wall = from.wall_s / to.wall_s;
  for (const auto& problem : {span_problem(from, "from"), span_problem(to, "to")})
    if (result.reason.empty()) result.reason = problem;
  if (!result.reason.empty()) return result;
  result.host = (from.wall_s / from.span_s) / (to.wall_s / to.span_s);
  for (const auto& problem : {busy_problem(from, "from"), busy_problem(to, "to")})
    if (result.reason.empty()) result.reason = problem;
  if (!result.reason.empty()) return result;
  result.launch_gap = (from.span_s / *from.busy_s) / (to.span_s / *to.busy_s);
  result.kernel = *from.busy_s / *to.busy_s;
  return result;
}

}  // namespace twinbench

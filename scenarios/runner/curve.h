// What a curve of losses is judged by: how far it falls, and how often it jumps.
#pragma once

#include <cstddef>
#include <vector>

namespace twinbench {

// The median of the last `count` values over that of the first; 1e30 where one of these is not finite or the first is
// 0. Fewer values than 2 * count: those there are, halved.
double last_over_first(const std::vector<double>& curve, std::size_t count);

// Changes between neighbours larger than `factor` times the median of the absolute changes before them, of the last
// `count` of these, once there are so many. A change that is not finite is a jump.
double jumps(const std::vector<double>& curve, std::size_t count, double factor);

}  // namespace twinbench

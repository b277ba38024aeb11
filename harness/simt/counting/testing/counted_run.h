// For tests: runs planted and example kernels under the counter, from code compiled at -O1, -O2 and -O3.
#pragma once

#include <string>
#include <vector>

#include "harness/simt/counting/launch_counts.h"
#include "harness/simt/executor.h"

namespace twinbench::kernels::simt {

struct CountedRun {
  LaunchCounts counts;
  Report report;
};

// Each throws std::out_of_range for a kernel that is not one of names().
namespace level_1 {
CountedRun run(const std::string& kernel, Order order);
}
namespace level_2 {
CountedRun run(const std::string& kernel, Order order);
std::vector<std::string> names();
CountedRun run_sampled(std::uint64_t most_threads);  // 64 blocks of 256 threads, 8 loads each
}  // namespace level_2
namespace level_3 {
CountedRun run(const std::string& kernel, Order order);
}

}  // namespace twinbench::kernels::simt

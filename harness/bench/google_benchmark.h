// Every cell as a Google Benchmark: its flags and its JSON, as users know them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/registry.h"

namespace twinbench {

struct GoogleBenchmarkRun {
  std::size_t ran = 0;     // cells; 0 where the filter matched none
  std::size_t errors = 0;  // rows with an error instead of a time: the run threw, or its answers were rejected
};

// Registers `cells` under their names and hands `arguments` (all --benchmark_* flags) to Google Benchmark. Set-up
// (inputs, factory, first run) and the judging of the answers before and after (see JudgedVariant) are outside the
// timed loop. Throws Error(kBadArgument) on a flag that Google Benchmark does not know.
GoogleBenchmarkRun run_google_benchmark(const std::vector<Cell>& cells, const std::vector<std::string>& arguments,
                                        std::uint64_t seed);

}  // namespace twinbench

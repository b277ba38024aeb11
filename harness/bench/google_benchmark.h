// Every cell as a Google Benchmark: its flags and its JSON, as users know them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/registry.h"

namespace twinbench {

// Registers `cells` under their names and hands `arguments` (all --benchmark_* flags) to Google Benchmark. Set-up (inputs,
// factory, first run) is outside the timed loop. Returns the number of cells that ran, 0 where the filter matched none.
// Throws Error(kBadArgument) on a flag that Google Benchmark does not know.
std::size_t run_google_benchmark(const std::vector<Cell>& cells, const std::vector<std::string>& arguments, std::uint64_t seed);

}  // namespace twinbench

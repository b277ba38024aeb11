// `twinbench kernels`: what kernels touch, counted on the host and pinned; what compilers say; modelled times.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "harness/command/command.h"

namespace twinbench {

struct KernelsOptions {
  std::string filter = ".";
  std::string pins = "ci/kernel_counts.json", budgets = "ci/kernel_budgets.json", machine_code = "ci/kernel_sass.json";
  std::string cards = "ci/cards";
  std::string out;  // record file; empty: none is written
  std::uint64_t seed = 1234;
  std::uint64_t most_threads = 1 << 19;  // of a launch that is counted whole
  double minutes = 0;                    // 0: no limit
  bool pin = false, as_json = false, timed_only = false, pins_only = false;
};

CLI::App* add_kernels_command(CLI::App& program, KernelsOptions& options);
// `common`: of the program, for the record's provenance.
int kernels_command(const KernelsOptions& options, CommandOptions common);

}  // namespace twinbench

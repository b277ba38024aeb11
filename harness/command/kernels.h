// `twinbench kernels`: what kernels touch, counted on the host and pinned; what compilers say; modelled times.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace twinbench {

struct KernelsOptions {
  std::string filter = ".";
  std::string pins = "ci/kernel_counts.json", budgets = "ci/kernel_budgets.json", machine_code = "ci/kernel_sass.json";
  std::string cards = "ci/cards";
  std::uint64_t seed = 1234;
  std::uint64_t most_threads = 1 << 19;  // of a launch that is counted whole
  // In cases of many items, whose blocks are all alike, fewer stand for all.
  std::uint64_t most_threads_of_many = 1 << 14;
  std::int64_t many_items = 4096;
  bool pin = false, as_json = false, timed_only = false, pins_only = false;
};

CLI::App* add_kernels_command(CLI::App& program, KernelsOptions& options);
int kernels_command(const KernelsOptions& options);

}  // namespace twinbench

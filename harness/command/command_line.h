// The command line of the program: what it means, or what to say instead. Torch-free, so that a fuzzer can have it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/command/options.h"

namespace twinbench {

struct CommandLine {
  std::string command;  // "parity", ...
  CommandOptions options;
  SessionOptions session;
  ScenarioOptions scenario;
  KernelsOptions kernels;
  DataOptions data;
  ConfigurationOptions configuration;
  std::string checks;                               // of parity
  std::string timing = "all";                       // of selftest
  std::string cell, file;                           // dump, check
  std::vector<std::string> sizes;                   // dump
  std::vector<std::string> google_benchmark_flags;  // bench
  std::size_t null_comparisons = 600;
  bool null = false;                                       // bench --null
  bool as_json = false, cells = false, scenarios = false;  // list
  bool trace_all = false;                                  // counters
  bool pin = false, drop = false, timed_baselines = false;
  std::string counter_pins = "ci/counters.json", instruction_pins = "ci/instructions.json",
              coverage_pins = "ci/coverage.txt";

  // Nothing to run: what to print, where, and the exit code. Help is no error.
  struct Over {
    int code = 0;
    std::string printed, complained;
  };
  std::optional<Over> over;
};

// Throws Error only where the words are of no kind that an option could be of; what it cannot read is `over`.
CommandLine read_command_line(int count, const char* const* words);

}  // namespace twinbench

// The twinbench program: reads the command line, runs one engine, turns what it throws into exit code 2.
#include "harness/command/program.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "harness/command/arguments.h"
#include "harness/command/command.h"
#include "harness/command/command_line.h"
#include "harness/command/configuration.h"
#include "harness/command/data.h"
#include "harness/command/kernels.h"
#include "harness/command/outputs.h"
#include "harness/command/scenario.h"
#include "harness/runner/interruption_watch.h"
#include "harness/runner/told_error.h"
#include "harness/runner/waiting_threads.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr int kMostThreadsEach = 16;  // on each processor: more only wait for each other

// Empty for the commands that compare with none.
std::string pins_of(const CommandLine& line) {
  return line.command == "counters"       ? line.counter_pins
         : line.command == "instructions" ? line.instruction_pins
         : line.command == "coverage"     ? line.coverage_pins
         : line.command == "kernels"      ? line.kernels.pins
                                          : "";
}

void check_files(const CommandLine& line) {
  require_writable("--out", line.options.out);
  require_writable("--out", line.kernels.out);
  require_writable("--out", line.data.out);
  if (line.command == "dump") require_writable("--out", line.file);
  const std::string pins = pins_of(line);
  const bool pin = line.pin || line.kernels.pin;
  if (!pins.empty()) require_pins(pins, pin);
  if (pin) require_writable("--pins", pins);
}

// What these have measured when they are interrupted is kept. Google Benchmark keeps nothing: it is ended.
bool keeps_what_it_has(const CommandLine& line) {
  static const std::set<std::string> measuring = {"parity",   "counters", "instructions", "bench",
                                                  "ceilings", "scenario", "selftest",     "kernels"};
  return measuring.contains(line.command) && line.google_benchmark_flags.empty();
}

int run(CommandLine& line, const std::string& waiting_threads, char** arguments) {
  CommandOptions& options = line.options;
  const std::string& command = line.command;
  std::optional<InterruptionWatch> watch;
  if (keeps_what_it_has(line)) watch.emplace();
  check_files(line);
  const RecordName record("--out", options.out.empty() ? line.kernels.out : options.out);
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (options.threads == 0) options.threads = processors;
  if (options.threads > kMostThreadsEach * processors)
    throw Error(ErrorKind::kOutOfRange, "--threads", std::to_string(options.threads),
                "this machine has " + std::to_string(processors) + " processors: give at most " +
                    std::to_string(kMostThreadsEach * processors) + ", or 0 for one on each");
  if (command == "bench" || command == "ceilings" || command == "scenario")
    std::fprintf(stderr, "twinbench: waiting threads: %s\n", waiting_threads.c_str());
  if (command == "list")
    return line.scenarios ? scenario_list_command(options, line.scenario, line.as_json)
                          : list_command(options, line.as_json, line.cells);
  if (command == "parity") return parity_command(options, line.checks);
  if (command == "counters") return counters_command(options, line.counter_pins, line.pin, line.trace_all);
  if (command == "instructions")
    return instructions_command(options, line.instruction_pins, line.pin, line.timed_baselines, arguments);
  if (command == "bench")
    return line.null ? null_command(options, line.null_comparisons)
                     : bench_command(options, line.session, line.google_benchmark_flags);
  if (command == "ceilings") return ceilings_command(options);
  if (command == "scenario") return scenario_command(options, line.scenario);
  if (command == "coverage") return coverage_command(line.coverage_pins, line.scenario.folder, line.pin, line.drop);
  if (command == "selftest") return selftest_command(options, line.timing);
  if (command == "dump") return dump_command(options, line.cell, line.sizes, line.file);
  if (command == "check") return check_command(options, line.cell, line.file);
  if (command == "data") return data_command(line.data);
  if (command == "kernels") return kernels_command(line.kernels, options);
  if (command == "configuration") return configuration_command(line.configuration);
  throw Error(ErrorKind::kInternal, "command", command, "every subcommand is run here");
}

int run_words(int count, char** words) {
  int code = kExitInconclusive;
  try {
    const std::string waiting_threads = policy_of_waiting_threads();
    CommandLine line = read_command_line(count, words);
    if (line.over) {
      std::fputs(line.over->printed.c_str(), stdout);
      std::fputs(line.over->complained.c_str(), stderr);
      code = line.over->code;
    } else {
      code = run(line, waiting_threads, words);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "twinbench: %s\n", told(error).c_str());
    return kExitUsage;
  }
  if (const std::string lost = lost_output(); !lost.empty()) {
    std::fprintf(stderr, "twinbench: input_output: %s\n", lost.c_str());
    return kExitUsage;
  }
  return code;
}

}  // namespace

int program(int count, char** words) {
  keep_standard_streams();
  leave_nothing_behind();
  try {
    return run_words(count, words);
  } catch (const std::exception& error) {  // where memory is short even for the words of an error
    std::fprintf(stderr, "twinbench: %s\n", error.what());
    return kExitUsage;
  }
}

}  // namespace twinbench

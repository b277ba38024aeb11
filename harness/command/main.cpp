// The twinbench program: reads the command line, runs one engine, turns what it throws into exit code 2.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "harness/command/arguments.h"
#include "harness/command/command.h"
#include "harness/command/configuration.h"
#include "harness/command/data.h"
#include "harness/command/kernels.h"
#include "harness/command/outputs.h"
#include "harness/command/scenario.h"
#include "harness/runner/told_error.h"
#include "harness/runner/waiting_threads.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace {

using twinbench::CommandOptions;

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return CLI::Validator([=](const std::string& text) { return twinbench::not_whole(text, least, most); }, "");
}

CLI::Validator named_file() {
  return CLI::Validator([](const std::string& text) { return text.empty() ? "'' names no file" : std::string(); }, "");
}

void add_seed(CLI::App* command, CommandOptions& options) {
  command->add_option("--seed", options.seed, "Seed of every input")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
}

void add_common(CLI::App* command, CommandOptions& options, bool measures) {
  command->add_option("--filter", options.filter,
                      "Regular expression on cell names <id>/<variant>/<device>/<dtype>/<case>; "
                      "of scenarios <pipeline>/<name>/<device>");
  command->add_option("--device", options.device, "cpu, cuda, simt (the CUDA path executed on the host) or all")
      ->check(CLI::IsMember({"cpu", "cuda", "simt", "all"}))
      ->capture_default_str();
  add_seed(command, options);
  if (!measures) return;
  command->add_option("--out", options.out, "Record file (JSON) to write")->check(named_file());
  command->add_option("--threads", options.threads, "Threads of at::parallel_for; 0: one a core")
      ->check(CLI::Range(0, 1024));
  command->add_option("--time-limit", options.time_limit_s, "Seconds a child process may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--memory-limit", options.memory_limit_mib,
                   "MiB a child process may take (default 8192; 32768 with --device cuda or all)")
      ->check(whole_number(1, twinbench::kMostMemory_MiB));
  command
      ->add_option("--thread-order", options.thread_order,
                   "In which order simt runs the threads of a block: forward, reverse, shuffled, or all in turn")
      ->capture_default_str();
  command->add_flag("--quick", options.quick, "Fewer pairs and smaller budgets");
  command->add_flag("--in-process", options.in_process,
                    "No child processes, no limits: for compute-sanitizer and debuggers");
  command->add_flag("--require-device", options.require_device,
                    "A cell whose device is missing is an error, not a skip");
}

// For engines with much to do: which part of it, and for how long.
void add_limits(CLI::App* command, CommandOptions& options) {
  command
      ->add_option(
          "--minutes", options.minutes,
          "Begin nothing after so many minutes; the most valuable come first, what is left out is named and makes "
          "exit code 3")
      ->check(CLI::Validator(
          [](const std::string& text) {
            double minutes = 0;
            const bool fits =
                CLI::detail::lexical_cast(text, minutes) && minutes > 0 && minutes <= 1e6;  // NaN does not
            return fits ? std::string() : "'" + text + "' is no number of minutes above 0 and at most 1e6";
          },
          "MINUTES"));
  command->add_option("--shard", options.shard, "i/n: only that part of n disjoint ones, decided by names alone");
}

// For engines with many cells also which of the large ones.
void add_share(CLI::App* command, CommandOptions& options, bool tiers) {
  add_limits(command, options);
  command
      ->add_option("--sample", options.sample,
                   "Text that decides samples and order (default the revision), to repeat a run")
      ->envname("TWINBENCH_SAMPLE");
  if (tiers)
    command
        ->add_option("--tier", options.tier, "quick: everything at small sizes, large cases sampled; full: everything")
        ->capture_default_str();
}

// Every long flag a subcommand knows, for "did you mean".
std::vector<std::string> flags_of(const CLI::App* command) {
  std::vector<std::string> flags;
  for (const auto* option : command->get_options())
    for (const auto& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

int usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const CLI::App* command = &app;
  std::vector<std::string> names;
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(sub->get_name());
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (argc > 1 && sub->get_name() == argv[1]) command = sub;
  std::string hint;
  for (int i = 1; i < argc && hint.empty(); ++i) {
    const std::string word = argv[i];
    if (i == 1 && command == &app && word.rfind("-", 0) != 0) hint = twinbench::did_you_mean(word, names);
    if (word.rfind("--", 0) == 0) {
      const auto flag = word.substr(0, word.find('='));
      const auto known = flags_of(command);
      if (std::find(known.begin(), known.end(), flag) == known.end()) hint = twinbench::did_you_mean(flag, known);
    }
  }
  std::fprintf(stderr, "twinbench: bad_argument: %s%s\nRun 'twinbench%s%s --help'.\n", error.what(), hint.c_str(),
               command == &app ? "" : " ", command == &app ? "" : command->get_name().c_str());
  return twinbench::kExitUsage;
}

int program(int argc, char** argv) {
  std::string waiting_threads;
  try {
    waiting_threads = twinbench::settle_waiting_threads(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "twinbench: %s\n", error.what());
    return twinbench::kExitUsage;
  }
  CLI::App app{
      "Twinbench: every component twice, baseline and optimized; parity, counters, time, scenarios.\n"
      "Exit codes: 0 pass, 1 regression or failure, 2 usage, tool or system error, 3 inconclusive or nothing\n"
      "measured, 4 a limit of time or memory was reached."};
  app.require_subcommand(1);
  CommandOptions options;
  for (int i = 0; i < argc; ++i) options.command_line += (i ? " " : "") + std::string(argv[i]);
  int code = twinbench::kExitInconclusive;

  bool as_json = false, cells = false, scenario_list = false, pin = false, trace_all = false;
  std::string pins = "ci/counters.json", checks, cell, file;
  twinbench::ScenarioOptions scenario;
  std::vector<std::string> sizes;
  std::string timing = "all";

  auto* list =
      app.add_subcommand("list", "Components, variants, devices, dtypes, cases, sin, proof counters with both values");
  list->add_flag("--json", as_json, "As JSON");
  auto* cell_names = list->add_flag("--cells", cells, "Cell names, one a line");
  list->add_flag("--scenarios", scenario_list, "Scenarios with source, tier, experiment, variants and devices")
      ->excludes(cell_names);
  add_common(list, options, false);

  auto* parity = app.add_subcommand("parity", "Checks that both variants compute the same");
  parity->add_option("--checks", checks, "Comma-separated checks to run; default all");
  const char* held_out =
      "Text that draws the held-out cases (default the revision), to repeat a run; none: without them";
  parity->add_option("--held-out", options.held_out, held_out);
  add_common(parity, options, true);
  add_share(parity, options, true);

  auto* counters =
      app.add_subcommand("counters", "Counts what each variant asks the library to do, against the pinned file");
  auto* counter_pins = counters->add_option("--pins", pins, "The checked-in counter file")->capture_default_str();
  counters->add_flag("--pin", pin, "Write what was counted into the file: the one way to change it");
  counters->add_flag("--trace-all", trace_all, "Trace the device under CPU cells too, where it should do nothing");
  add_common(counters, options, true);
  add_share(counters, options, true);

  std::string instruction_pins = "ci/instructions.json";
  auto* instructions = app.add_subcommand(
      "instructions", "Counts the instructions of a run of every small CPU cell under Callgrind, against the pins");
  auto* counts_pins =
      instructions->add_option("--pins", instruction_pins, "The checked-in instruction counts")->capture_default_str();
  instructions->add_flag("--pin", pin, "Write what was counted into the file: the one way to change it");
  add_common(instructions, options, true);
  add_limits(instructions, options);

  auto* bench = app.add_subcommand(
      "bench", "Paired timings of every timed twin; with --benchmark_* flags: Google Benchmark over every cell");
  bench->allow_extras();
  twinbench::SessionOptions session;
  bench
      ->add_option("--session-from", session.from,
                   "Take ceilings and null test from a record of this machine; repeatable")
      ->check(CLI::ExistingFile);
  bench->add_flag("--session-only", session.only, "Measure ceilings and null test, and no twin");
  bench->add_option("--null-cells", session.null_cells, "Twins compared with themselves")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  bench
      ->add_option("--null-blocks", session.null_blocks,
                   "ABBA blocks a null comparison takes; 0: until its interval is narrow")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  bench
      ->add_option(
          "--regime", options.regime,
          "What the caches of a CUDA device hold before a run: hot, cold, rotating; declared: what each component says")
      ->check(CLI::IsMember({"declared", "hot", "cold", "rotating"}))
      ->capture_default_str();
  bool null = false;
  std::size_t null_comparisons = 600;
  bench->add_flag("--null", null,
                  "Judge the gate instead: cells against themselves, and against themselves with 5 % more work");
  bench->add_option("--null-comparisons", null_comparisons, "Of cells with themselves; half as many planted ones")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  bench->add_option("--held-out", options.held_out, held_out);
  bench->add_option("--earlier", session.earlier, "Records whose decided twins come last; repeatable")
      ->check(CLI::ExistingFile);
  add_common(bench, options, true);
  add_share(bench, options, false);

  auto* ceilings =
      app.add_subcommand("ceilings", "What this machine can do at best: copy bandwidth and matrix products");
  add_common(ceilings, options, true);

  auto* scenarios = app.add_subcommand("scenario", "Runs whole training steps against their pass criteria");
  scenarios->add_option("name", scenario.name, "Scenario name or file; default all");
  for (auto* command : {scenarios, list})
    command->add_option("--folder", scenario.folder, "Where the scenario files lie")->capture_default_str();
  for (auto* command : {scenarios, list})
    command->add_option("--tier", scenario.tier, "The largest tier: smoke, std or full")->capture_default_str();
  add_common(scenarios, options, true);
  add_limits(scenarios, options);

  std::string coverage_pins = "ci/coverage.txt";
  bool drop = false;
  auto* coverage = app.add_subcommand("coverage", "Holds what is checked against the pinned list, which may only grow");
  coverage->add_option("--pins", coverage_pins, "The checked-in list")->capture_default_str();
  coverage->add_option("--folder", scenario.folder, "Where the scenario files lie")->capture_default_str();
  auto* pin_coverage = coverage->add_flag("--pin", pin, "Write what there is into the list");
  coverage->add_flag("--drop", drop, "With --pin: let go of what is gone")->needs(pin_coverage);

  auto* selftest =
      app.add_subcommand("selftest", "Planted wrong twins and correct controls: the harness proves itself");
  add_common(selftest, options, true);
  add_limits(selftest, options);
  selftest
      ->add_option("--timing", timing,
                   "all; only: the twins that time judges, which want a quiet machine; without: all others")
      ->check(CLI::IsMember({"all", "only", "without"}))
      ->capture_default_str();

  auto* dump = app.add_subcommand("dump", "Writes named inputs and outputs of a cell as safetensors");
  dump->add_option("cell", cell, "<id>/<variant>/<device>/<dtype>/<case>")->required();
  dump->add_option("--size", sizes, "K=V: another size than the case's; repeatable");
  dump->add_option("--out", file, "The .safetensors file to write")->required()->check(named_file());
  add_seed(dump, options);

  auto* check = app.add_subcommand("check", "Judges the outputs in a file by the cell's own tolerances");
  check->add_option("cell", cell, "<id>/<variant>/<device>/<dtype>/<case>")->required();
  check->add_option("--from", file, "A .safetensors file as dump writes it")->required();

  twinbench::DataOptions data_options;
  auto* data = twinbench::add_data_command(app, data_options);
  twinbench::KernelsOptions kernels_options;
  auto* kernels = twinbench::add_kernels_command(app, kernels_options);
  twinbench::ConfigurationOptions configuration_options;
  auto* configuration = twinbench::add_configuration_command(app, configuration_options);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, argc, argv);
  }
  try {
    if (*bench)
      for (const auto& extra : bench->remaining())
        if (extra.rfind("--benchmark_", 0) != 0 && extra.rfind("--v=", 0) != 0)
          throw twinbench::Error(
              twinbench::ErrorKind::kBadArgument, "flag", extra,
              "`twinbench bench --help` lists the flags" + twinbench::did_you_mean(extra, flags_of(bench)));
    twinbench::require_writable("--out", options.out);
    twinbench::require_writable("--out", kernels_options.out);
    if (*dump) twinbench::require_writable("--out", file);
    if (pin || kernels_options.pin)
      twinbench::require_writable("--pins", *counters       ? pins
                                            : *instructions ? instruction_pins
                                            : *coverage     ? coverage_pins
                                                            : kernels_options.pins);
    for (const auto* command : app.get_subcommands())
      if (const auto* limit = command->get_option_no_throw("--time-limit"))
        options.time_limit_given = limit->count() > 0;
    if (options.threads == 0) options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    if (*bench || *ceilings || *scenarios)
      std::fprintf(stderr, "twinbench: waiting threads: %s\n", waiting_threads.c_str());
    if (*list)
      code = scenario_list ? twinbench::scenario_list_command(options, scenario, as_json)
                           : twinbench::list_command(options, as_json, cells);
    if (*parity) code = twinbench::parity_command(options, checks);
    twinbench::require_pins(pins, *counters && counter_pins->count() > 0, pin);
    twinbench::require_pins(instruction_pins, *instructions && counts_pins->count() > 0, pin);
    if (*counters) code = twinbench::counters_command(options, pins, pin, trace_all);
    if (*instructions) code = twinbench::instructions_command(options, instruction_pins, pin, argv);
    if (*bench)
      code = null ? twinbench::null_command(options, null_comparisons)
                  : twinbench::bench_command(options, session, bench->remaining());
    if (*ceilings) code = twinbench::ceilings_command(options);
    if (*scenarios) code = twinbench::scenario_command(options, scenario);
    if (*coverage) code = twinbench::coverage_command(coverage_pins, scenario.folder, pin, drop);
    if (*selftest) code = twinbench::selftest_command(options, timing);
    if (*dump) code = twinbench::dump_command(options, cell, sizes, file);
    if (*check) code = twinbench::check_command(options, cell, file);
    if (*data) code = twinbench::data_command(data_options);
    if (*kernels) code = twinbench::kernels_command(kernels_options, options);
    if (*configuration) code = twinbench::configuration_command(configuration_options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "twinbench: %s\n", twinbench::told(error).c_str());
    return twinbench::kExitUsage;
  }
  if (const std::string lost = twinbench::lost_output(); !lost.empty()) {
    std::fprintf(stderr, "twinbench: input_output: %s\n", lost.c_str());
    return twinbench::kExitUsage;
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  twinbench::keep_standard_streams();
  twinbench::leave_nothing_behind();
  try {
    return program(argc, argv);
  } catch (const std::exception& error) {  // before and after the engines, as where memory is short from the start
    std::fprintf(stderr, "twinbench: %s\n", error.what());
    return twinbench::kExitUsage;
  }
}

// Subcommands and their flags, by CLI11.
#include "harness/command/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>

#include "harness/command/arguments.h"
#include "harness/ledger/ledger.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"
#include "src/common/one_line.h"

namespace twinbench {
namespace {

constexpr std::size_t kLongestComplaint = 4096;
constexpr const char* kHeldOutHelp =
    "Text that draws the held-out cases (default the revision), to repeat a run; none: without them";
constexpr const char* kNoText = "no text: leave it out for the revision";

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return CLI::Validator([=](const std::string& text) { return not_whole(text, least, most); }, "");
}

CLI::Validator named(const std::string& what) {
  return CLI::Validator([=](const std::string& text) { return text.empty() ? "'' names " + what : std::string(); }, "");
}
CLI::Validator named_file() { return named("no file"); }

// Not CLI::Range, which lets NaN through.
CLI::Validator number_within(double least, double most, const std::string& of) {
  return CLI::Validator(
      [=](const std::string& text) {
        double value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
        char range[64];
        std::snprintf(range, sizeof range, "from %g to %g", least, most);
        return fits ? std::string() : "'" + text + "' is no number of " + of + " " + range;
      },
      "");
}

void add_seed(CLI::App* command, std::uint64_t& seed) {
  command->add_option("--seed", seed, "Seed of every input")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
}

void add_common(CLI::App* command, CommandOptions& options, bool measures) {
  command
      ->add_option("--filter", options.filter,
                   "Regular expression on cell names <id>/<variant>/<device>/<dtype>/<case>; "
                   "of scenarios <pipeline>/<name>/<device>")
      ->check(named("nothing: leave --filter out for all"));
  command->add_option("--device", options.device, "cpu, cuda, simt (the CUDA path executed on the host) or all")
      ->check(CLI::IsMember({"cpu", "cuda", "simt", "all"}))
      ->capture_default_str();
  add_seed(command, options.seed);
  if (!measures) return;
  command->add_option("--out", options.out, "Record file (JSON) to write; missing folders are made")
      ->check(named_file());
  command->add_option("--threads", options.threads, "Threads of at::parallel_for; 0: one a core")
      ->check(CLI::Range(0, 1024));
  command
      ->add_option("--time-limit", options.time_limit_s,
                   "Seconds a child process may take; without it, bench gives each twin what it may need")
      ->check(number_within(1e-6, 1e9, "seconds"))
      ->capture_default_str();
  command
      ->add_option("--memory-limit", options.memory_limit_mib,
                   "MiB a child process may take (default 8192; 32768 with --device cuda or all)")
      ->check(whole_number(1, kMostMemory_MiB));
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
      ->check(number_within(1e-6, 1e6, "minutes"));
  command->add_option("--shard", options.shard, "i/n: only that part of n disjoint ones, decided by names alone")
      ->check(named("no part: give i/n, such as 2/3"));
}

void add_sample(CLI::App* command, std::string& sample) {
  command->add_option("--sample", sample, "Text that decides samples and order (default the revision), to repeat a run")
      ->check(named(kNoText))
      ->envname("TWINBENCH_SAMPLE");
}

// For engines with many cells also which of the large ones.
void add_share(CLI::App* command, CommandOptions& options, bool tiers) {
  add_limits(command, options);
  add_sample(command, options.sample);
  if (tiers)
    command
        ->add_option("--tier", options.tier, "quick: everything at small sizes, large cases sampled; full: everything")
        ->capture_default_str()
        ->excludes(command->get_option("--quick"));
}

// Every long flag a subcommand knows, for "did you mean".
std::vector<std::string> flags_of(const CLI::App* command) {
  std::vector<std::string> flags;
  for (const auto* option : command->get_options())
    for (const auto& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(sub->get_name());
  return names;
}

CommandLine::Over usage_error(const CLI::App& app, const CLI::ParseError& error,
                              const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string of;
  for (const std::string& word : words) {  // "data", then "make"
    const auto subs = command->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == word; });
    if (subs.empty()) break;
    command = subs.front();
    of += " " + word;
  }
  std::string hint;
  for (std::size_t i = 0; i < words.size() && hint.empty(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with("--")) {
      const auto flag = word.substr(0, word.find('='));
      const auto known = flags_of(command);
      if (std::find(known.begin(), known.end(), flag) == known.end()) hint = did_you_mean(flag, known);
    }
  }
  return {kExitUsage, "",
          "twinbench: bad_argument: " + one_line(error.what() + hint, kLongestComplaint) + "\nRun 'twinbench" + of +
              " --help'.\n"};
}

void add_bench(CLI::App& app, CommandLine& line) {
  CommandOptions& options = line.options;
  auto* bench = app.add_subcommand(
      "bench", "Paired timings of every timed twin; with --benchmark_* flags: Google Benchmark over every cell");
  bench->allow_extras();
  bench
      ->add_option("--session-from", line.session.from,
                   "Take ceilings and null test from a record of this machine; repeatable")
      ->check(CLI::ExistingFile);
  bench->add_flag("--session-only", line.session.only, "Measure ceilings and null test, and no twin");
  bench->add_option("--null-cells", line.session.null_cells, "Twins compared with themselves")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  bench
      ->add_option("--null-blocks", line.session.null_blocks,
                   "ABBA blocks a null comparison takes; 0: until its interval is narrow")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  bench
      ->add_option("--seconds", options.comparison_s,
                   "Seconds of pairs a comparison may take (default 6, where runs are slow 20; with --quick 4)")
      ->check(number_within(1e-3, 1e6, "seconds"));
  bench
      ->add_option(
          "--regime", options.regime,
          "What the caches of a CUDA device hold before a run: hot, cold, rotating; declared: what each component says")
      ->check(CLI::IsMember({"declared", "hot", "cold", "rotating"}))
      ->capture_default_str();
  bench->add_flag("--null", line.null,
                  "Judge the gate instead: cells against themselves, and against themselves with 5 % more work");
  bench->add_option("--null-comparisons", line.null_comparisons, "Of cells with themselves; half as many planted ones")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  bench->add_option("--held-out", options.held_out, kHeldOutHelp)->check(named(kNoText));
  bench->add_option("--earlier", line.session.earlier, "Records whose decided twins come last; repeatable")
      ->check(CLI::ExistingFile);
  add_common(bench, options, true);
  add_share(bench, options, false);
}

void add_kernels(CLI::App& program, KernelsOptions& options) {
  auto* command = program.add_subcommand(
      "kernels", "What every kernel touches, counted on the host; what compilers say; modelled time by card");
  command->add_option("--filter", options.filter, "Regular expression on cells of device simt")
      ->check(named("nothing: leave --filter out for all"))
      ->capture_default_str();
  command->add_option("--pins", options.pins, "The checked-in counts")->capture_default_str();
  command->add_option("--cards", options.cards, "Folder of cards")->capture_default_str();
  command->add_option("--machine-code", options.machine_code, "Pieces of the compiled kernels, of ci/kernel_sass.py")
      ->capture_default_str();
  add_seed(command, options.seed);
  command->add_option("--size", options.sizes, "K=V: instead of the case's, for sizes too large for other engines")
      ->delimiter(',');
  command
      ->add_option("--minutes", options.minutes,
                   "Begin no cell after so many minutes; small ones come first, in another order in each revision; "
                   "what is left out is named: exit code 3")
      ->check(number_within(1e-6, 1e6, "minutes"));
  add_sample(command, options.sample);
  command->add_flag("--pin", options.pin, "Write what was counted into the file: the one way to change it");
  command->add_flag("--pins-only", options.pins_only, "Compare with the pins, do not judge by the bounds");
  command->add_flag("--timed", options.timed_only, "Timed cases only");
  command->add_option("--out", options.out,
                      "Record file (JSON) to write: the modelled times of the timed cells; missing folders are made");
  command->add_flag("--json", options.as_json, "As JSON, every line and every term of the model");
}

void add_data(CLI::App& app, DataOptions& options) {
  constexpr std::uint64_t kMostWidth = 65'536, kMostRows = 1'000'000'000, kMostWords = 1'000'000;
  auto* data = app.add_subcommand("data", "Dataset files: from text, .pt, safetensors, JSONL");
  data->require_subcommand(1);
  const auto add = [&](const std::string& action, const std::string& help) {
    auto* command = data->add_subcommand(action, help);
    command->callback([&options, action] { options.action = action; });
    return command;
  };
  const auto add_conversion = [&](CLI::App* command) {
    command->add_option("--stored", options.stored, "How embeddings are stored")
        ->check(CLI::IsMember({"fp32", "bf16"}));
    command->add_option("--width", options.width, "Refuse another embedding width")->check(whole_number(1, kMostWidth));
    command->add_flag("--normalise", options.normalise, "Every embedding to norm 1");
    command->add_flag("--drop-invalid", options.drop_invalid,
                      "Leave rows out that validation refuses, instead of failing");
  };
  auto* make =
      add("make", "Writes an EFDS file from dataset or text files; without any, from the machine's own English texts");
  make->add_option("inputs", options.inputs, "Source files");
  make->add_option("--out", options.out, "The .efds file to write")->required();
  make->add_option("--words", options.words,
                   "From text: fewest and most words of a sentence that is kept (default 4 40)")
      ->expected(2)
      ->check([](const std::string& text) {
        const std::string wrong = not_whole(text, 1, kMostWords);
        return wrong.empty() ? "" : wrong + ": give two, the fewest and the most";
      })
      ->type_name("MIN MAX");
  make->add_option("--rows", options.rows,
                   "From text: most pairs, thinned evenly; 0: all (default 5021, as documented)")
      ->check(whole_number(0, kMostRows));
  add_conversion(make);
  auto* info = add("info", "Checks a dataset file or a checkpoint (.efck) and describes it");
  info->add_option("file", options.inputs, "Dataset file")->required()->expected(1);
  info->add_flag("--json", options.as_json, "As JSON");
  auto* convert = add(
      "convert",
      "Any dataset format to .efds, .safetensors or .jsonl, by extension; checkpoints (.efck) to safetensors and back");
  convert->add_option("file", options.inputs, "Source file")->required()->expected(1);
  convert->add_option("--out", options.out, "File to write")->required();
  add_conversion(convert);
}

void add_configuration(CLI::App& program, ConfigurationOptions& options) {
  auto* command = program.add_subcommand(
      "configuration", "What a documented configuration asks for and gets: flows, parameters, bytes; whether it fits");
  command->add_option("name", options.name, "Its name or file; default a table of all")->check(named("none"));
  command->add_option("--folder", options.folder, "Where the configurations lie")->capture_default_str();
  command->add_option("--memory", options.memory_gb, "Of the card, in GB")
      ->check(number_within(1e-3, 1e6, "GB"))
      ->capture_default_str();
  command->add_flag("--json", options.as_json, "As JSON, every field");
}

void add_all(CLI::App& app, CommandLine& line) {
  CommandOptions& options = line.options;
  auto* list =
      app.add_subcommand("list", "Components, variants, devices, dtypes, cases, sin, proof counters with both values");
  auto* as_json = list->add_flag("--json", line.as_json, "As JSON");
  auto* cell_names = list->add_flag("--cells", line.cells, "Cell names, one a line")->excludes(as_json);
  list->add_flag("--scenarios", line.scenarios, "Scenarios with source, tier, experiment, variants and devices")
      ->excludes(cell_names);
  add_common(list, options, false);
  list->get_option("--device")->default_str("all, of scenarios in words cpu");

  auto* parity = app.add_subcommand("parity", "Checks that both variants compute the same");
  parity->add_option("--checks", line.checks, "Comma-separated checks to run; default all")
      ->check([](const std::string& text) { return text.empty() ? std::string("name at least one check") : ""; });
  parity->add_option("--held-out", options.held_out, kHeldOutHelp)->check(named(kNoText));
  add_common(parity, options, true);
  add_share(parity, options, true);

  auto* counters =
      app.add_subcommand("counters", "Counts what each variant asks the library to do, against the pinned file");
  counters->add_option("--pins", line.counter_pins, "The checked-in counter file")->capture_default_str();
  counters->add_flag("--pin", line.pin, "Write what was counted into the file: the one way to change it");
  counters->add_flag("--trace-all", line.trace_all, "Trace the device under CPU cells too, where it should do nothing");
  add_common(counters, options, true);
  add_share(counters, options, true);

  auto* instructions = app.add_subcommand(
      "instructions",
      "Counts the instructions of a run of one small CPU cell of each kind under Callgrind, against the pins");
  instructions->add_option("--pins", line.instruction_pins, "The checked-in instruction counts")->capture_default_str();
  instructions->add_flag("--pin", line.pin, "Write what was counted into the file: the one way to change it");
  instructions->add_flag("--timed", line.timed_baselines,
                         "Count one timed size of each baseline instead: some minutes");
  add_common(instructions, options, true);
  instructions->get_option("--threads")
      ->check(CLI::Range(0, 1))
      ->description("One: instructions are those of a thread");
  add_limits(instructions, options);

  add_bench(app, line);
  auto* ceilings =
      app.add_subcommand("ceilings", "What this machine can do at best: copy bandwidth and matrix products");
  add_common(ceilings, options, true);

  auto* scenarios = app.add_subcommand("scenario", "Runs whole training steps against their pass criteria");
  scenarios->add_option("name", line.scenario.name, "Scenario name or file; default all");
  for (auto* command : {scenarios, list})
    command->add_option("--folder", line.scenario.folder, "Where the scenario files lie")->capture_default_str();
  for (auto* command : {scenarios, list})
    command->add_option("--tier", line.scenario.tier, "The largest tier: smoke, std or full")->capture_default_str();
  add_common(scenarios, options, true);
  // Every scenario file gives its own.
  scenarios->remove_option(scenarios->get_option("--seed"));
  add_limits(scenarios, options);

  auto* coverage = app.add_subcommand("coverage", "Holds what is checked against the pinned list, which may only grow");
  coverage->add_option("--pins", line.coverage_pins, "The checked-in list")->capture_default_str();
  coverage->add_option("--folder", line.scenario.folder, "Where the scenario files lie")->capture_default_str();
  auto* pin_coverage = coverage->add_flag("--pin", line.pin, "Write what there is into the list");
  coverage->add_flag("--drop", line.drop, "With --pin: let go of what is gone")->needs(pin_coverage);

  auto* selftest =
      app.add_subcommand("selftest", "Planted wrong twins and correct controls: the harness proves itself");
  add_common(selftest, options, true);
  add_limits(selftest, options);
  selftest
      ->add_option("--timing", line.timing,
                   "all; only: the twins that time judges, which want a quiet machine; without: all others")
      ->check(CLI::IsMember({"all", "only", "without"}))
      ->capture_default_str();

  auto* dump = app.add_subcommand("dump", "Writes named inputs and outputs of a cell as safetensors");
  dump->add_option("cell", line.cell, "<id>/<variant>/<device>/<dtype>/<case>")->required();
  dump->add_option("--size", line.sizes, "K=V: another size than the case's; repeatable");
  dump->add_option("--out", line.file, "The .safetensors file to write")->required()->check(named_file());
  add_seed(dump, options.seed);

  auto* check = app.add_subcommand("check", "Judges the outputs in a file by the cell's own tolerances");
  check->add_option("cell", line.cell, "<id>/<variant>/<device>/<dtype>/<case>")->required();
  check->add_option("--from", line.file, "A .safetensors file as dump writes it")->required();

  add_data(app, line.data);
  add_kernels(app, line.kernels);
  add_configuration(app, line.configuration);
}

}  // namespace

CommandLine read_command_line(int count, const char* const* words) {
  CommandLine line;
  CLI::App app{
      "Twinbench: every component twice, baseline and optimized; parity, counters, time, scenarios.\n"
      "Exit codes: 0 pass, 1 regression or failure, 2 usage, tool or system error, 3 inconclusive or nothing\n"
      "measured, 4 a limit of time or memory was reached."};
  app.require_subcommand(1);
  for (int i = 0; i < count; ++i) line.options.command_line += (i ? " " : "") + std::string(words[i]);
  add_all(app, line);
  // The parser asks for help, or that there be a command, before it looks at what was given as one.
  const CLI::App* parent = &app;
  for (int i = 1; i < count && *words[i] != '-'; ++i) {
    const auto names = commands_of(*parent);
    if (names.empty()) break;
    if (std::find(names.begin(), names.end(), words[i]) == names.end())
      throw Error(ErrorKind::kUnknownName, "command", words[i],
                  "`twinbench " + (i == 1 ? "" : std::string(words[1]) + " ") + "--help` lists them" +
                      did_you_mean(words[i], names));
    parent = parent->get_subcommand(words[i]);
  }
  try {
    app.parse(count, words);
  } catch (const CLI::CallForHelp&) {
    line.over = {kExitPass, app.help(), ""};
    return line;
  } catch (const CLI::ParseError& error) {
    line.over = usage_error(app, error, {words + std::min(count, 1), words + count});
    return line;
  }
  const CLI::App* const chosen = app.get_subcommands().front();
  line.command = chosen->get_name();
  if (const auto* limit = chosen->get_option_no_throw("--time-limit"))
    line.options.time_limit_given = limit->count() > 0;
  if (line.command == "list" && chosen->count("--device") == 0)
    line.options.device = line.scenarios && !line.as_json ? "cpu" : "all";
  if (line.command != "bench") return line;
  line.google_benchmark_flags = chosen->remaining();
  for (const auto& extra : line.google_benchmark_flags)
    if (!extra.starts_with("--benchmark_") && !extra.starts_with("--v="))
      throw Error(ErrorKind::kBadArgument, "flag", extra,
                  "`twinbench bench --help` lists the flags" + did_you_mean(extra, flags_of(chosen)));
  return line;
}

}  // namespace twinbench

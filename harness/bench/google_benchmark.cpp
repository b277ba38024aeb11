// Registration by loop over the registry; counters carry bytes and FLOPs so that Google Benchmark prints rates.
#include "harness/bench/google_benchmark.h"

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#include "harness/bench/timed_answers.h"
#include "harness/bench/twin_timing.h"
#include "harness/runner/told_error.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"
#include "src/formats/file_io.h"

namespace twinbench {
namespace {

// Google Benchmark calls a cell several times, and the variants of a case follow one another: the last right answers
// are kept.
class LastAnswers {
 public:
  const TimedAnswers& of(const Cell& cell, std::uint64_t seed) {
    const std::string name = Twin{cell.component, cell.device, cell.dtype, cell.input_case}.name();
    if (name != name_) {
      answers_ = std::make_unique<TimedAnswers>(*cell.component, cell.setting(), seed);
      name_ = name;
    }
    return *answers_;
  }

 private:
  std::string name_;
  std::unique_ptr<TimedAnswers> answers_;
};

// A row with the reason; the other cells go on.
void refuse(benchmark::State& state, const std::string& reason, std::size_t& errors) {
  state.SkipWithError(reason.c_str());
  ++errors;
}

void run_cell(benchmark::State& state, const Cell& cell, std::uint64_t seed, LastAnswers& answers,
              std::size_t& errors) {
  try {
    const auto setting = cell.setting();
    JudgedVariant judged(cell.variant, cell.device, answers.of(cell, seed), 1, true);
    if (const std::string wrong = judged.judge_before(); !wrong.empty())
      return refuse(state, "rejected: " + wrong, errors);
    for (auto _ : state) judged.timed_run();
    if (const std::string wrong = judged.judge_after(); !wrong.empty())
      return refuse(state, "rejected: " + wrong, errors);
    if (!cell.component->spec.cost) return;
    const Cost cost = cell.component->spec.cost(setting);
    using benchmark::Counter;
    if (cost.bytes > 0)
      state.counters["bytes_per_second"] = Counter(cost.bytes, Counter::kIsIterationInvariantRate, Counter::kIs1024);
    if (cost.flops > 0) state.counters["flop_per_second"] = Counter(cost.flops, Counter::kIsIterationInvariantRate);
  } catch (const std::exception& error) {
    refuse(state, told(error), errors);
  }
}

// The file of --benchmark_out. Google Benchmark would write into whatever is there, end the process with code 1 where
// it cannot open it, and say nothing where a write fails. So it writes to memory, and that goes where other files go.
class OutFile {
 public:
  static constexpr std::string_view kFlag = "--benchmark_out=";

  explicit OutFile(std::string path)
      : path_(std::move(path)), descriptor_(::memfd_create("benchmark_out", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw Error(ErrorKind::kInputOutput, "--benchmark_out", path_, std::strerror(errno));
    try {
      make_directory_of(path_);
      check_writable(path_);
    } catch (const Error& error) {
      ::close(descriptor_);
      throw Error(ErrorKind::kInputOutput, "--benchmark_out", path_, error.what());
    }
  }
  ~OutFile() { ::close(descriptor_); }
  OutFile(const OutFile&) = delete;
  OutFile& operator=(const OutFile&) = delete;

  std::string flag() const { return std::string(kFlag) + "/proc/self/fd/" + std::to_string(descriptor_); }
  void write() const { write_file(path_, MappedFile(flag().substr(kFlag.size())).bytes()); }

 private:
  std::string path_;
  int descriptor_;
};

// It would say so on standard error, and run nothing.
void require_pattern(const std::string& argument) {
  constexpr std::string_view kFlag = "--benchmark_filter=";
  if (!argument.starts_with(kFlag)) return;
  const std::string given = argument.substr(kFlag.size());
  try {
    std::regex(given.substr(given.starts_with('-')), std::regex::extended);  // with a minus: all others
  } catch (const std::regex_error& error) {
    throw Error(ErrorKind::kBadArgument, "--benchmark_filter", given,
                std::string("not a regular expression: ") + error.what());
  }
}

}  // namespace

GoogleBenchmarkRun run_google_benchmark(const std::vector<Cell>& cells, const std::vector<std::string>& arguments,
                                        std::uint64_t seed) {
  GoogleBenchmarkRun run;
  LastAnswers answers;
  for (const auto& cell : cells)
    benchmark::RegisterBenchmark(
        cell.name().c_str(), [&, cell](benchmark::State& state) { run_cell(state, cell, seed, answers, run.errors); })
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
  std::vector<std::string> storage = {"twinbench"};
  std::optional<OutFile> out;
  for (const std::string& argument : arguments) require_pattern(argument);
  for (const std::string& argument : arguments)
    if (argument.starts_with(OutFile::kFlag))
      storage.push_back(out.emplace(argument.substr(OutFile::kFlag.size())).flag());
    else
      storage.push_back(argument);
  std::vector<char*> pointers;
  for (auto& argument : storage) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (count > 1) {
    static const std::vector<std::string> known = {"--benchmark_filter",
                                                   "--benchmark_list_tests",
                                                   "--benchmark_min_time",
                                                   "--benchmark_min_warmup_time",
                                                   "--benchmark_repetitions",
                                                   "--benchmark_enable_random_interleaving",
                                                   "--benchmark_report_aggregates_only",
                                                   "--benchmark_display_aggregates_only",
                                                   "--benchmark_out",
                                                   "--benchmark_out_format",
                                                   "--benchmark_format",
                                                   "--benchmark_color",
                                                   "--benchmark_counters_tabular",
                                                   "--benchmark_context",
                                                   "--benchmark_time_unit",
                                                   "--benchmark_perf_counters",
                                                   "--v"};
    throw Error(ErrorKind::kBadArgument, "flag", pointers[1],
                "Google Benchmark does not know it" + did_you_mean(pointers[1], known));
  }
  benchmark::AddCustomContext("seed", std::to_string(seed));
  run.ran = benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  benchmark::ClearRegisteredBenchmarks();
  if (out && run.ran > 0) out->write();
  return run;
}

}  // namespace twinbench

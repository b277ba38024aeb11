// Registration by loop over the registry; counters carry bytes and FLOPs so that Google Benchmark prints rates.
#include "harness/bench/google_benchmark.h"

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include <exception>

#include "harness/compare/inputs.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench {
namespace {

void run_cell(benchmark::State& state, const Cell& cell, std::uint64_t seed) {
  try {
    const auto setting = cell.setting();
    const auto inputs = placed_inputs(generated_inputs(cell.component->spec, setting, seed), setting.dtype, setting.device);
    const auto runnable = cell.component->make(cell.variant, inputs, setting);
    runnable->run();
    for (auto _ : state) runnable->run();
    if (!cell.component->spec.cost) return;
    const Cost cost = cell.component->spec.cost(setting);
    using benchmark::Counter;
    if (cost.bytes > 0) state.counters["bytes_per_second"] = Counter(cost.bytes, Counter::kIsIterationInvariantRate, Counter::kIs1024);
    if (cost.flops > 0) state.counters["flop_per_second"] = Counter(cost.flops, Counter::kIsIterationInvariantRate);
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());  // a row with the reason; the other cells go on
  }
}

}  // namespace

std::size_t run_google_benchmark(const std::vector<Cell>& cells, const std::vector<std::string>& arguments, std::uint64_t seed) {
  for (const auto& cell : cells)
    benchmark::RegisterBenchmark(cell.name().c_str(), [cell, seed](benchmark::State& state) { run_cell(state, cell, seed); })
        ->Unit(benchmark::kMicrosecond)->UseRealTime();
  std::vector<std::string> storage = {"twinbench"};
  storage.insert(storage.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (auto& argument : storage) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (count > 1) {
    static const std::vector<std::string> known = {"--benchmark_filter", "--benchmark_list_tests", "--benchmark_min_time", "--benchmark_min_warmup_time",
        "--benchmark_repetitions", "--benchmark_enable_random_interleaving", "--benchmark_report_aggregates_only", "--benchmark_display_aggregates_only",
        "--benchmark_out", "--benchmark_out_format", "--benchmark_format", "--benchmark_color", "--benchmark_counters_tabular", "--benchmark_context",
        "--benchmark_time_unit", "--benchmark_perf_counters", "--v"};
    throw Error(ErrorKind::kBadArgument, "flag", pointers[1], "Google Benchmark does not know it" + did_you_mean(pointers[1], known));
  }
  benchmark::AddCustomContext("seed", std::to_string(seed));
  const std::size_t ran = benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return ran;
}

}  // namespace twinbench

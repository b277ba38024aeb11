// `twinbench bench`: ceilings and null test first, then every timed twin, each in its own process.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>

#include "harness/bench/google_benchmark.h"
#include "harness/bench/twin_order.h"
#include "harness/bench/twin_rows.h"
#include "harness/bench/twin_timing.h"
#include "harness/command/command.h"
#include "harness/command/jobs.h"
#include "harness/counters/counter_scope.h"
#include "harness/device/bench/device_rows.h"
#include "harness/device/bench/device_twin_timing.h"
#include "harness/ledger/ledger.h"
#include "harness/parity/held_out.h"
#include "harness/record/earlier_records.h"
#include "harness/record/record.h"
#include "src/common/error.h"
#include "src/common/one_line.h"

namespace twinbench {
namespace {

using nlohmann::json;

// Google Benchmark rows of a timing: one iteration row a sample would be the raw form; its tools want medians.
json benchmark_row(const json& timing) {
  const double microseconds = timing["median_s"].is_number() ? timing["median_s"].get<double>() * 1e6 : 0;
  json row = {{"name", timing["cell"]},
              {"run_name", timing["cell"]},
              {"run_type", "iteration"},
              {"repetitions", 1},
              {"repetition_index", 0},
              {"threads", 1},
              {"iterations", timing["iterations_per_sample"]},
              {"real_time", microseconds},
              {"cpu_time", microseconds},
              {"time_unit", "us"}};
  if (timing["verdict"] != "pass") {
    row["error_occurred"] = true;
    row["error_message"] = timing["reason"];
  }
  return row;
}

DeviceTimingOptions timing_options(const CommandOptions& options, const std::string& sample,
                                   const ClockQuality& clock) {
  DeviceTimingOptions device;
  if (options.regime != "declared") device.regime = regime_named(options.regime);
  TwinTimingOptions& timing = device.twin;
  timing.seed = options.seed;
  timing.sample = sample;
  timing.clock = clock;
  timing.max_pairs = options.quick ? 12 : 64;
  timing.seconds = options.quick ? 4 : 6;
  timing.interval_seconds = options.quick ? 0 : 20;
  timing.target_half_width = options.quick ? 0.05 : 0.01;
  if (options.comparison_s > 0) timing.seconds = timing.interval_seconds = options.comparison_s;
  return device;
}

// So many twins spread over the list: the sentinels of the null test.
std::vector<Twin> sentinels(std::vector<Twin> twins, std::size_t count) {
  std::vector<Twin> chosen;
  std::erase_if(twins, [](const Twin& twin) { return twin.input_case->name == kHeldOut; });  // not drawn here
  for (std::size_t i = 0; i < count && i < twins.size(); ++i)
    chosen.push_back(twins[i * twins.size() / std::min(count, twins.size())]);
  return chosen;
}

// What the session measures beside its twins: which devices they are on.
struct SessionTwins {
  std::vector<Twin> on_cpu, on_cuda;
};

SessionTwins by_device(const std::vector<Twin>& twins) {
  SessionTwins split;
  for (const auto& twin : twins) (twin.device == c10::DeviceType::CUDA ? split.on_cuda : split.on_cpu).push_back(twin);
  return split;
}

// Opens the session: ceilings, clock, dispatcher, null test, of each device that twins are on. In a child, because it
// runs parallel regions and opens the device.
json session_job(const std::vector<Twin>& twins, DeviceTimingOptions timing, const SessionOptions& session,
                 json ceilings, bool quick) {
  if (session.null_blocks > 0) {
    timing.twin.max_pairs = 2 * static_cast<std::size_t>(session.null_blocks);
    timing.twin.target_half_width = 1e-9;  // no early end
    timing.twin.seconds = std::max(timing.twin.seconds, 0.25 * session.null_blocks);
  }
  const SessionTwins split = by_device(twins);
  const auto cells = static_cast<std::size_t>(session.null_cells);
  const bool measure = ceilings.empty();
  json row = {{"dispatcher_ns_per_call", measure_dispatcher_cost().plain_ns},
              {"clock_resolution_ns", timing.twin.clock.resolution_s * 1e9},
              {"device", nullptr}};
  std::vector<json> nulls;
  if (!split.on_cpu.empty()) {
    if (measure)
      for (const auto& ceiling : measure_cpu_ceilings(quick)) ceilings.push_back(to_json(ceiling));
    nulls.push_back(null_test_row(sentinels(split.on_cpu, cells), timing.twin));
  }
  if (!split.on_cuda.empty()) {
    const auto device = open_cuda_bench_device();
    row["device"] = opened_device_session(*device);
    if (measure) {
      const json measured = measured_device_ceilings(*device, quick);
      for (const auto& ceiling : measured["ceilings"]) ceilings.push_back(ceiling);
      row["device"]["refused_ceilings"] = measured["refused"];
    }
    nulls.push_back(
        device_null_test_row(sentinels(split.on_cuda, cells), timing, device_session_from(row["device"]), *device));
  }
  row["null_test"] = nulls.size() == 1 ? nulls.front() : joined_null_tests(nulls);
  return {{"ceilings", ceilings}, {"session", row}};
}

std::vector<Ceiling> ceilings_from(const json& rows) {
  std::vector<Ceiling> ceilings;
  for (const auto& row : rows) ceilings.push_back(ceiling_from(row));
  return ceilings;
}

std::string decimals(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void print_speedup(const json& row) {
  std::printf("%-58s %s -> %-9s ",
              (row["component"].get<std::string>() + "/" + row["device"].get<std::string>() + "/" +
               row["dtype"].get<std::string>() + "/" + row["case"].get<std::string>())
                  .c_str(),
              row["from"].get<std::string>().c_str(), row["to"].get<std::string>().c_str());
  if (row["lower"].is_number())
    std::printf("x%.2f [%.2f, %.2f] (n = %d, %s%s) %s\n", row["ratio"].get<double>(), row["lower"].get<double>(),
                row["upper"].get<double>(), row["n"].get<int>(), row["regime"].get<std::string>().c_str(),
                row.contains("clock") ? (", " + row["clock"].get<std::string>()).c_str() : "",
                row["verdict"].get<std::string>().c_str());
  else
    std::printf("%s: %s\n", row["verdict"].get<std::string>().c_str(), row["reason"].get<std::string>().c_str());
  const auto part = [&](const char* name) {
    return row["decomposition"][name].is_number() ? decimals(row["decomposition"][name], 2) : std::string("?");
  };
  if (row.contains("decomposition"))
    std::printf("%58s wall x%s = host x%s, launch gaps x%s, kernels x%s\n", "", part("wall").c_str(),
                part("host").c_str(), part("launch_gap").c_str(), part("kernel").c_str());
}

json time_on_its_device(const Twin& twin, const DeviceTimingOptions& timing, const json& session,
                        const std::vector<Ceiling>& ceilings) {
  if (twin.device == c10::DeviceType::CPU) return time_twin(twin, timing.twin, ceilings);
  if (!session.is_object() || session["device"].is_null())
    throw Error(ErrorKind::kMissingDevice, "session.device", "absent",
                "the session measured no device timer: see its own error, or leave --session-from out");
  const auto device = open_cuda_bench_device();
  return time_device_twin(twin, timing, device_session_from(session.at("device")), ceilings, *device);
}

// A case that the revision draws, with a small budget: it is there to be judged. The first draw that is a case.
json time_held_out(const Twin& twin, const std::string& text, DeviceTimingOptions timing, const json& session,
                   const std::vector<Ceiling>& ceilings) {
  timing.twin.max_pairs = std::min<std::size_t>(timing.twin.max_pairs, 12);
  timing.twin.seconds = std::min(timing.twin.seconds, 2.0);
  timing.twin.interval_seconds = 0;
  for (int number = 0;; ++number) {
    const HeldOutDraw draw = held_out_draw(*twin.component, text, number, true);
    Twin drawn = twin;
    drawn.input_case = &draw.input_case;
    timing.twin.seed = draw.seed;
    try {
      json rows = time_on_its_device(drawn, timing, session, ceilings);
      rows["held_out"] = draw.text;
      return rows;
    } catch (const Error&) {
      if (number + 1 == kHeldOutDraws) throw;
    }
  }
}

// What judging answers takes of the time of all twins: of the processor's, which other load does not stretch.
struct JudgedShare {
  double judging_s = 0, twins_s = 0, processor_s = 0;
  std::map<std::string, double> by_what;

  void add(const JobResult& twin) {
    judging_s += twin.value["judging_s"].get<double>();
    twins_s += twin.seconds;
    processor_s += twin.value["cpu_s"].get<double>();
    for (const auto& [what, seconds] : twin.value["judging_cpu_s"].items()) by_what[what] += seconds.get<double>();
  }
  void print() const {
    if (twins_s <= 0) return;
    double sum = 0;
    std::string text;
    for (const auto& [what, seconds] : by_what) {
      sum += seconds;
      text += (text.empty() ? "" : ", ") + what + " " + decimals(seconds, 1);
    }
    std::printf("answers judged: %.1f s of %.1f s (%.0f %%); of the processor %.1f s of %.1f s (%.0f %%: %s)\n",
                judging_s, twins_s, 100 * judging_s / twins_s, sum, processor_s, 100 * sum / processor_s, text.c_str());
  }
};

// The executor's own time says nothing about a kernel's.
std::vector<Cell> timeable_cells(const CommandOptions& options, bool others = false) {
  if (options.device == "simt")
    throw Error(ErrorKind::kBadArgument, "--device", "simt",
                "simt runs the CUDA path thread by thread on the host: its times mean nothing; use parity or counters");
  auto cells = selected_cells(options, others);
  std::erase_if(cells, [](const Cell& cell) { return cell.device.is_simt(); });
  return cells;
}

}  // namespace

int bench_command(const CommandOptions& options, const SessionOptions& session_options,
                  const std::vector<std::string>& google_benchmark_flags) {
  if (!google_benchmark_flags.empty()) {
    at::set_num_threads(options.threads);
    const GoogleBenchmarkRun run = run_google_benchmark(timeable_cells(options), google_benchmark_flags, options.seed);
    return run.errors > 0 ? kExitFailure : run.ran > 0 ? kExitPass : kExitInconclusive;
  }

  const TimeBudget budget(options.minutes);
  const Shard shard = shard_named(options.shard);
  const HeldOutCells held_out(options.held_out == "none" ? "^$" : options.filter, options.device, true);
  auto twins = twins_of(timeable_cells(options, !held_out.cells().empty()));
  require_held_out(options, held_out);
  if (twins.empty() && held_out.cells().empty())
    throw Error(ErrorKind::kUnknownName, "--filter", options.filter,
                "it matches no timed case; `twinbench list` marks them with *");
  for (const auto& twin : twins_of(held_out.cells()))
    if (!twin.device.is_simt()) twins.push_back(twin);
  std::erase_if(twins, [&](const Twin& twin) { return !shard.has(twin.name()); });
  Ledger ledger;
  Record record = open_record(options, "bench");
  const std::string sample = sample_of(options, record), drawn_by = held_out_text(options, record);
  twins = most_valuable_first(std::move(twins), decided_twins(session_options.earlier), sample);
  SteadyClock clock;
  const auto timing = timing_options(options, sample, measure_clock(clock));
  if (!session_options.only)
    for (const auto& twin : twins) ledger.plan(twin.name());
  set_aside_missing_device(twins, options, ledger);
  if (twins.empty()) return finish("bench", options, ledger, record);

  std::vector<Ceiling> ceilings;
  json opened;
  const std::string session = "session";
  ledger.plan(session);
  const json earlier = session_from_records(session_options.from, options.device);
  const double null_test_s = 60 + 2.0 * session_options.null_cells * session_options.null_blocks;
  const Job session_opening = limited_job(options, session, null_test_s, [&] {
    return earlier["session"].is_null()
               ? session_job(twins, timing, session_options, earlier["ceilings"], options.quick)
               : earlier;
  });
  bool going = run_with_progress({session_opening}, record, [&](const JobResult& result) {
    if (!result.ok()) {
      record_failure(ledger, session, result);
      return;
    }
    for (const auto& row : result.value["ceilings"]) record.add("ceilings", row);
    record.set_session(result.value["session"]);
    ceilings = ceilings_from(result.value["ceilings"]);
    opened = result.value["session"];
    const auto& null = result.value["session"]["null_test"];
    std::cout << "null test: " << null["verdict"].get<std::string>() << " over " << null["pairs"]
              << " pairs; noise floor " << null["noise_floor"] << '\n';
    if (null["verdict"] == "same")
      ledger.record(session, Outcome::kPass);
    else
      ledger.record(session, Outcome::kInconclusive, "null test: " + null["reason"].get<std::string>());
  });

  JudgedShare judged;
  std::vector<Job> jobs;
  for (const auto& twin : session_options.only ? std::vector<Twin>() : twins) {
    jobs.push_back(limited_job(options, twin.name(), needed_seconds(twin, timing.twin), [&, twin] {
      if (twin.input_case->name == kHeldOut) return time_held_out(twin, drawn_by, timing, opened, ceilings);
      return time_on_its_device(twin, timing, opened, ceilings);
    }));
  }
  std::size_t cut = 0;
  if (going)
    run_with_progress(
        jobs, record,
        [&](const JobResult& result) {
          if (!result.ok()) {
            record_failure(ledger, result.name, result);
            return;
          }
          judged.add(result);
          if (result.value.contains("held_out"))
            std::cout << "held out by " << one_line(drawn_by) << ": " << result.name << " "
                      << result.value["held_out"].get<std::string>() << '\n';
          std::string broken;
          for (const auto& row : result.value["timings"]) {
            record.add("timings", row);
            record.add_benchmark(benchmark_row(row));
            if (row["verdict"] != "pass")
              broken += (broken.empty() ? "" : "; ") + row["cell"].get<std::string>() + ": " +
                        row["reason"].get<std::string>();
          }
          for (const auto& row : result.value["speedups"]) {
            record.add("speedups", row);
            print_speedup(row);
          }
          // A slow or undecided speedup is a finding, not a failure of the run: the gate judges it. A wrong answer is a
          // failure.
          if (broken.empty())
            ledger.record(result.name, Outcome::kPass);
          else
            ledger.record(result.name, Outcome::kFail, broken);
        },
        budget,
        [&](const std::string& name) {
          ledger.record(name, Outcome::kInconclusive, budget.reason());
          const auto twin =
              std::find_if(twins.begin(), twins.end(), [&](const Twin& one) { return one.name() == name; });
          json row =
              speedup_row(*twin, Variant::kBaseline, Variant::kOptimized, twin->component->spec.regime, PairedResult());
          withdraw(row, budget.reason());
          record.add("speedups", row);
          ++cut;
        });
  print_left_out(options, false, sample, 0, cut, budget);
  judged.print();
  return finish("bench", options, ledger, record);
}

}  // namespace twinbench

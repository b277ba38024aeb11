// `twinbench bench --null`: the timing gate on comparisons whose verdict is known, over all timed CPU cells.
#include <cmath>
#include <cstdio>
#include <iostream>

#include "harness/bench/gate_qualification.h"
#include "harness/command/command.h"
#include "harness/command/jobs.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

using nlohmann::json;

std::vector<Cell> timed_cells(const CommandOptions& options) {
  std::vector<Cell> cells;
  const Shard shard = shard_named(options.shard);
  for (const auto& twin : twins_of(selected_cells(options)))
    for (const auto variant : twin.variants())
      if (twin.device == c10::DeviceType::CPU && shard.has(twin.cell(variant).name()))
        cells.push_back(twin.cell(variant));
  return cells;
}

std::string counts(const Qualification& q) {
  const json row = to_json(q);
  char text[512];
  std::snprintf(
      text, sizeof text,
      "gate: %zu false verdicts in %zu comparisons of a cell with itself (%zu undecided; at most %.2f %% at 95 %%); "
      "%zu misses in %zu with %.0f %% more work at noise up to %.0f %% (found at least %.2f %%; %zu noisier or "
      "slower ones apart, %zu planted ones judged wrongly in all)",
      q.false_verdicts, q.comparisons, q.undecided, 100 * row["false_rate_at_most"].get<double>(), q.misses, q.planted,
      100 * kPlantedShare, 100 * kNoiseForPower, 100 * row["power_at_least"].get<double>(), q.planted_too_noisy,
      q.planted_wrong);
  return text;
}

std::string summary(const Qualification& q) {
  const std::string lacks = q.lacks();
  return counts(q) + (lacks.empty() ? ""
                                    : "; to a qualified gate it lacks " + lacks +
                                          ": runs with other --seed or --shard add up in `twinbench-report merge`");
}

}  // namespace

int null_command(const CommandOptions& options, std::size_t comparisons) {
  const auto cells = timed_cells(options);
  if (cells.empty())
    throw Error(ErrorKind::kUnknownName, "--filter", options.filter, "it matches no timed case on the CPU");
  const TimeBudget budget(options.minutes);
  Ledger ledger;
  Record record = open_record(options, "bench");
  SteadyClock clock;
  TwinTimingOptions timing;
  timing.seed = options.seed;
  timing.sample = sample_of(options, record);
  timing.clock = measure_clock(clock);
  timing.max_pairs = options.quick ? 32 : 64;
  timing.seconds = options.quick ? 1 : 4;
  const auto rounds =
      static_cast<std::size_t>(std::ceil(static_cast<double>(comparisons) / (2 * static_cast<double>(cells.size()))));
  std::vector<Job> jobs;
  for (const auto& cell : cells) {
    ledger.plan(cell.name());
    jobs.push_back(limited_job(options, cell.name(), 60 + 6 * timing.seconds * static_cast<double>(rounds),
                               [=] { return to_json(qualify_on(cell, timing, rounds)); }));
  }
  Qualification all;
  run_with_progress(
      jobs, record,
      [&](const JobResult& result) {
        if (!result.ok()) return record_failure(ledger, result.name, result);
        const Qualification of_cell = qualification_from(result.value);
        all.add(of_cell);
        if (of_cell.sound())
          ledger.record(result.name, Outcome::kPass);
        else
          ledger.record(result.name, Outcome::kFail, counts(of_cell));
      },
      budget, [&](const std::string& name) { ledger.record(name, Outcome::kInconclusive, budget.reason()); });
  record.set_session({{"null_test", nullptr},
                      {"dispatcher_ns_per_call", nullptr},
                      {"clock_resolution_ns", timing.clock.resolution_s * 1e9},
                      {"qualification", to_json(all)}});
  std::cout << summary(all) << '\n';
  return finish("bench --null", options, ledger, record);
}

}  // namespace twinbench

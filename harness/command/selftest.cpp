// `twinbench selftest`: every planted wrong twin must be caught by its check, every correct control accepted.
#include "harness/selftest/selftest.h"

#include <iostream>

#include "harness/command/command.h"
#include "harness/command/jobs.h"
#include "harness/record/record.h"
#include "harness/terminal/table.h"
#include "src/common/filter_pattern.h"

namespace twinbench {

int selftest_command(const CommandOptions& options) {
  Ledger ledger;
  Record record = open_record(options, "selftest");
  std::vector<Job> jobs;
  const TimeBudget budget(options.minutes);
  const Shard shard = shard_named(options.shard);
  const std::regex wanted = filter_pattern(options.filter);
  for (const auto& planted : selftest_cases()) {
    if (!std::regex_search(planted.name, wanted) || !shard.has(planted.name)) continue;
    ledger.plan(planted.name);
    const auto row_of = [&planted]() -> nlohmann::json {
      const auto row = run(planted);
      return {{"name", row.name}, {"kind", row.kind},       {"caught_by", row.caught_by}, {"expected", row.expected},
              {"got", row.got},   {"verdict", row.verdict}, {"reason", row.reason}};
    };
    jobs.push_back(limited_job(options, planted.name, row_of));
    // A planted job forks once more, which wants a process that never had a second thread.
    if (planted.job) jobs.back().run = [row_of](JobContext&) { return row_of(); };
  }
  if (jobs.empty())
    throw Error(ErrorKind::kUnknownName, "--filter", options.filter, "no planted twin or control has such a name");
  Table table({{"twin"}, {"kind"}, {"expected"}, {"got"}, {"verdict"}});
  const auto on_result = [&](const JobResult& job) {
    if (!job.ok()) {
      ledger.record(job.name, Outcome::kError, failure_of(job));
      table.add_row({job.name, "-", "-", failure_of(job), "error"});
      return;
    }
    const auto& row = job.value;
    record.add("selftest", row);
    table.add_row({row["name"], row["kind"], row["expected"], row["got"], row["verdict"]});
    const auto outcome = outcome_named(row["verdict"]);
    const auto reason = row["reason"].get<std::string>();
    ledger.record(job.name, outcome,
                  outcome == Outcome::kPass ? ""
                  : reason.empty()
                      ? "expected " + row["expected"].get<std::string>() + ", got " + row["got"].get<std::string>()
                      : reason);
  };
  std::size_t cut = 0;
  run_with_progress(jobs, record, on_result, budget, [&](const std::string& name) {
    ledger.record(name, Outcome::kInconclusive, budget.reason());
    ++cut;
  });
  table.print(std::cout);
  if (cut > 0) std::cout << "  " << cut << " left out, " << budget.reason() << '\n';
  return finish("selftest", options, ledger, record);
}

}  // namespace twinbench

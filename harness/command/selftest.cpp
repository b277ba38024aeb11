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
  const std::regex wanted = filter_pattern(options.filter);
  for (const auto& planted : selftest_cases()) {
    if (!std::regex_search(planted.name, wanted)) continue;
    ledger.plan(planted.name);
    jobs.push_back(limited_job(options, planted.name, [&planted]() -> nlohmann::json {
      const auto row = run(planted);
      return {{"name", row.name}, {"kind", row.kind},       {"caught_by", row.caught_by}, {"expected", row.expected},
              {"got", row.got},   {"verdict", row.verdict}, {"reason", row.reason}};
    }));
  }
  if (jobs.empty())
    throw Error(ErrorKind::kUnknownName, "--filter", options.filter, "no planted twin or control has such a name");
  Table table({{"twin"}, {"kind"}, {"expected"}, {"got"}, {"verdict"}});
  run_with_progress(jobs, record, [&](const JobResult& job) {
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
  });
  table.print(std::cout);
  return finish("selftest", options, ledger, record);
}

}  // namespace twinbench

// `twinbench selftest`: every planted wrong twin must be caught by its check, every correct control accepted.
#include "harness/selftest/selftest.h"

#include <algorithm>
#include <iostream>
#include <map>

#include "harness/command/command.h"
#include "harness/command/jobs.h"
#include "harness/record/record.h"
#include "harness/terminal/table.h"
#include "src/common/filter_pattern.h"

namespace twinbench {
namespace {

// A budget that ends early has then seen each check catch something: the first twin of every check, then the second of
// every check, and so on. Correct controls count as a check's.
std::vector<const SelftestCase*> most_valuable_first(const std::vector<SelftestCase>& cases) {
  std::map<std::string, std::size_t> seen;
  std::vector<std::pair<std::size_t, const SelftestCase*>> ranked;
  for (const auto& planted : cases) ranked.emplace_back(seen[planted.caught_by]++, &planted);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const SelftestCase*> ordered;
  for (const auto& [rank, planted] : ranked) ordered.push_back(planted);
  return ordered;
}

}  // namespace

int selftest_command(const CommandOptions& options, const std::string& timing) {
  const TimeBudget budget(options.minutes);
  const Shard shard = shard_named(options.shard);
  Ledger ledger;
  Record record = open_record(options, "selftest");
  std::vector<Job> jobs;
  std::size_t cut = 0;
  const FilterPattern wanted(options.filter);
  bool any = false;
  for (const SelftestCase* one : most_valuable_first(selftest_cases())) {
    const SelftestCase& planted = *one;
    if (!wanted.found_in(planted.name) || (timing != "all" && planted.is_timed() != (timing == "only"))) continue;
    any = true;
    if (!shard.has(planted.name)) continue;
    ledger.plan(planted.name);
    const auto row_of = [&planted]() -> nlohmann::json {
      const auto row = run(planted);
      return {{"name", row.name},           {"what", planted.what},     {"kind", row.kind},
              {"caught_by", row.caught_by}, {"expected", row.expected}, {"got", row.got},
              {"verdict", row.verdict},     {"reason", row.reason}};
    };
    jobs.push_back(limited_job(options, planted.name, 0, row_of));
    // A planted job forks once more, which wants a process that never had a second thread.
    if (planted.job) jobs.back().run = [row_of](JobContext&) { return row_of(); };
  }
  if (!any)
    throw Error(ErrorKind::kUnknownName, "--filter", options.filter, "no planted twin or control has such a name");
  Table table({{"twin"}, {"kind"}, {"expected"}, {"got"}, {"verdict"}});
  const auto on_result = [&](const JobResult& job) {
    if (!job.ok()) {
      record_failure(ledger, job.name, job);
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
  run_with_progress(jobs, record, on_result, budget, [&](const std::string& name) {
    ledger.record(name, Outcome::kInconclusive, budget.reason());
    table.add_row({name, "-", "-", "-", "left out"});
    ++cut;
  });
  table.print(std::cout);
  if (!options.shard.empty()) std::cout << "  shard " << options.shard << ": the other parts are other runs\n";
  if (cut > 0) std::cout << "  " << cut << " left out, " << budget.reason() << '\n';
  return finish("selftest", options, ledger, record);
}

}  // namespace twinbench

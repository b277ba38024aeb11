// `twinbench scenario`: each scenario in a child process, its criteria judged, a row in the record.
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "harness/command/jobs.h"
#include "harness/command/scenario.h"
#include "harness/record/record.h"
#include "harness/terminal/table.h"
#include "scenarios/runner/config.h"
#include "scenarios/runner/pipeline.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench {
namespace {

using nlohmann::json;

Pipeline find_pipeline(const std::string& name) {
  static const std::map<std::string, Pipeline> pipelines = {{"energy_flow", &run_energy_flow}};
  const auto found = pipelines.find(name);
  if (found != pipelines.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& entry : pipelines) names.push_back(entry.first);
  throw Error(ErrorKind::kUnknownName, "scenario.pipeline", name, "no such pipeline is wired" + did_you_mean(name, names));
}

// A criterion row. No value: skip with the reason, never a pass. An unknown measure is a mistake in the file.
json judge_criterion(const Criterion& criterion, const std::map<std::string, Measure>& measures) {
  const auto found = measures.find(criterion.measure);
  if (found == measures.end()) {
    std::vector<std::string> names;
    for (const auto& entry : measures) names.push_back(entry.first);
    throw Error(ErrorKind::kUnknownName, "scenario.criteria.measure", criterion.measure, "the pipeline measures no such thing" + did_you_mean(criterion.measure, names));
  }
  json row = {{"name", criterion.measure + " " + criterion.limit()}, {"verdict", "skip"}, {"reason", found->second.reason}, {"measured", nullptr}, {"limit", criterion.limit()}};
  if (!found->second.value) return row;
  const bool holds = criterion.holds(*found->second.value);
  row["measured"] = *found->second.value;
  row["verdict"] = holds ? "pass" : "fail";
  row["reason"] = holds ? criterion.why : "expected: " + criterion.why;
  return row;
}

json run_scenario(const ScenarioConfig& config, const PipelineOptions& options) {
  const auto outcome = find_pipeline(config.pipeline)(config, options);
  json row = {{"name", config.name}, {"pipeline", config.pipeline}, {"summary", config.summary}, {"verdict", "pass"}, {"reason", ""},
              {"device", options.device.is_cuda() ? "cuda" : "cpu"}, {"configuration", outcome.configuration},
              {"variants", outcome.variants}, {"speedup", outcome.speedup}, {"criteria", json::array()}};
  std::size_t passed = 0;
  for (const auto& criterion : config.criteria) {
    row["criteria"].push_back(judge_criterion(criterion, outcome.measures));
    const auto& judged = row["criteria"].back();
    if (judged["verdict"] == "pass") ++passed;
    if (judged["verdict"] == "fail") {
      row["verdict"] = "fail";
      row["reason"] = row["reason"].get<std::string>() + (row["reason"].get<std::string>().empty() ? "" : "; ") + judged["name"].get<std::string>();
    }
  }
  if (row["verdict"] == "pass" && passed == 0) {
    row["verdict"] = "skip";
    row["reason"] = "no criterion could be judged here";
  }
  make_strict(row);
  return row;
}

void print_scenario(const json& row) {
  std::cout << row["pipeline"].get<std::string>() << "/" << row["name"].get<std::string>() << ": " << row["verdict"].get<std::string>() << '\n';
  Table table({{"criterion"}, {"measured", Table::Align::kRight}, {"verdict"}, {"why"}});
  for (const auto& criterion : row["criteria"])
    table.add_row({criterion["name"], criterion["measured"].is_null() ? "-" : criterion["measured"].dump(), criterion["verdict"], criterion["reason"]});
  table.print(std::cout);
}

void record_outcome(Ledger& ledger, const std::string& name, const json& row) {
  // Each criterion is an entry of its own, so that a skip is counted and never hides behind the others.
  for (const auto& criterion : row["criteria"])
    ledger.record(name + ": " + criterion["name"].get<std::string>(), outcome_named(criterion["verdict"]),
                  criterion["verdict"] == "pass" ? std::string() : criterion["reason"].get<std::string>());
}

}  // namespace

int scenario_command(const CommandOptions& options, const std::string& folder, const std::string& name) {
  std::vector<ScenarioConfig> configs;
  if (std::filesystem::is_regular_file(name)) {
    configs.push_back(read_scenario(name));
  } else {
    std::vector<std::string> names;
    for (const auto& file : scenario_files(folder)) {
      auto config = read_scenario(file);
      names.push_back(config.name);
      if (name.empty() || name == config.name || name == config.pipeline + "/" + config.name) configs.push_back(std::move(config));
    }
    if (configs.empty()) throw Error(ErrorKind::kUnknownName, "scenario", name, "there is no such scenario in " + folder + did_you_mean(name, names));
  }
  for (const auto& config : configs) find_pipeline(config.pipeline);  // before anything runs

  PipelineOptions pipeline;
  pipeline.quick = options.quick;
  if (options.device == "cuda") selected_cells(options);  // throws where there is no device
  Ledger ledger;
  Record record = open_record(options, "scenario");
  std::vector<Job> jobs;
  for (const auto& config : configs) {
    ledger.plan(config.name);
    auto job = limited_job(options, config.name, [&config, pipeline] { return run_scenario(config, pipeline); });
    job.limits.wall_s = std::max(options.time_limit_s, 60 + 4 * config.seconds);
    jobs.push_back(std::move(job));
  }
  run_with_progress(jobs, record, [&](const JobResult& result) {
    if (!result.ok()) {
      ledger.record(result.name, Outcome::kError, failure_of(result));
      return;
    }
    record.add("scenarios", result.value);
    print_scenario(result.value);
    record_outcome(ledger, result.name, result.value);
    const auto verdict = result.value["verdict"].get<std::string>();
    ledger.record(result.name, outcome_named(verdict), verdict == "pass" ? "" : result.value["reason"].get<std::string>());
  });
  return finish("scenario", options, ledger, record);
}

}  // namespace twinbench

// `twinbench counters`: counts one steady run of every selected cell, holds it against the pins and the proof formulas.
#include <ATen/Parallel.h>

#include <iostream>
#include <set>

#include "harness/command/command.h"
#include "harness/command/jobs.h"
#include "harness/counters/count_component.h"
#include "harness/counters/pins.h"
#include "harness/record/record.h"

namespace twinbench {
namespace {

using nlohmann::json;

json values_of(const CounterSnapshot& snapshot) {
  json values;
  for (const auto& [name, field] : counter_fields()) values[name] = snapshot.*field;
  return values;
}

CounterSnapshot snapshot_from(const json& payload) {
  CounterSnapshot snapshot;
  for (const auto& [name, field] : counter_fields()) snapshot.*field = payload["values"][name];
  snapshot.by_name = payload["by_name"].get<std::map<std::string, std::int64_t>>();
  snapshot.forward_calls_by_name = payload["forward_calls_by_name"].get<std::map<std::string, std::int64_t>>();
  return snapshot;
}

// In the child. Two threads always: allocation counts of parallel operators depend on their number.
json count(const Cell& cell, std::uint64_t seed) {
  at::set_num_threads(2);
  const auto setting = cell.setting();
  const auto snapshot = count_run(*cell.component, cell.variant, setting, seed);
  json payload = {{"values", values_of(snapshot)}, {"by_name", snapshot.by_name}, {"forward_calls_by_name", snapshot.forward_calls_by_name}, {"proofs", json::array()}};
  const auto growth = check_growth(*cell.component, cell.variant, setting, seed, 3);
  payload["growth"] = growth.pass ? "" : growth.reason;
  // The proof belongs to both variants; it is taken once, with the optimized cell.
  if (cell.variant == Variant::kOptimized)
    for (const auto& proof : check_proof(*cell.component, setting, seed))
      payload["proofs"].push_back({{"component", cell.component->spec.id()}, {"device", cell.device == c10::DeviceType::CUDA ? "cuda" : "cpu"},
                                   {"dtype", to_string(cell.dtype)}, {"case", cell.input_case->name}, {"counter", proof.counter}, {"formula", proof.formula},
                                   {"baseline", {{"expected", proof.baseline_expected}, {"measured", proof.baseline_measured}}},
                                   {"optimized", {{"expected", proof.optimized_expected}, {"measured", proof.optimized_measured}}},
                                   {"verdict", proof.pass ? "pass" : "fail"}, {"reason", proof.reason}});
  return payload;
}

}  // namespace

int counters_command(const CommandOptions& options, const std::string& pins_file, bool pin) {
  auto pins = Pins::load(pins_file);
  const auto cells = selected_cells(options);
  Ledger ledger;
  Record record("counters", options.seed, options.command_line);
  std::vector<Job> jobs;
  for (const auto& cell : cells) {
    ledger.plan(cell.name());
    jobs.push_back(limited_job(options, cell.name(), [cell, &options] { return count(cell, options.seed); }));
  }
  bool all_counted = run_with_progress(jobs, [&](const JobResult& job) {
    if (!job.ok()) {
      ledger.record(job.name, Outcome::kError, failure_of(job));
      record.add("counters", {{"cell", job.name}, {"verdict", "error"}, {"reason", failure_of(job)}, {"values", json::object()}, {"by_name", json::object()}, {"pinned", nullptr}});
      return;
    }
    const auto measured = snapshot_from(job.value);
    if (pin) pins.set(job.name, measured);
    const auto verdict = pins.check(job.name, measured);
    std::string broken = verdict.pass ? "" : verdict.reason;
    const auto add = [&](const std::string& reason) {
      if (!reason.empty()) broken += (broken.empty() ? "" : "; ") + reason;
    };
    add(job.value["growth"].get<std::string>());
    for (const auto& proof : job.value["proofs"]) {
      record.add("proofs", proof);
      if (proof["verdict"] == "fail") add(proof["counter"].get<std::string>() + ": " + proof["reason"].get<std::string>());
    }
    const auto* pinned = pins.find(job.name);
    record.add("counters", {{"cell", job.name}, {"verdict", broken.empty() ? "pass" : "fail"}, {"reason", broken}, {"values", job.value["values"]},
                            {"by_name", job.value["by_name"]}, {"pinned", pinned ? values_of(*pinned) : json(nullptr)}});
    if (broken.empty()) ledger.record(job.name, Outcome::kPass);
    else ledger.record(job.name, Outcome::kFail, broken);
  });
  if (pin && all_counted) {
    // Cells that no longer exist leave the file with the next pin; a filter touches only its own cells.
    std::set<std::string> existing;
    for (const auto& cell : all_cells()) existing.insert(cell.name());
    std::vector<std::string> vanished;
    for (const auto& [cell, snapshot] : pins.cells())
      if (!existing.count(cell) && cell.find("/cpu/") != std::string::npos) vanished.push_back(cell);
    for (const auto& cell : vanished) pins.remove(cell);
    pins.save(pins_file);
    std::cout << "pinned " << cells.size() << " cells in " << pins_file << (vanished.empty() ? "" : ", dropped " + std::to_string(vanished.size())) << '\n';
  }
  std::cout << "counters: " << cells.size() << " cells\n";
  for (const auto& failure : ledger.failures()) std::cout << "  " << failure << '\n';
  std::cout << ledger.summary_line() << '\n';
  record.set_ledger(ledger.to_json());
  if (!options.out.empty()) record.write(options.out);
  return ledger.exit_code();
}

}  // namespace twinbench

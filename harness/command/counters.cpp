// `twinbench counters`: counts one steady run of every selected cell, holds it against the pins and the proof formulas.
#include <ATen/Parallel.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "harness/command/command.h"
#include "harness/command/jobs.h"
#include "harness/counters/case_memory.h"
#include "harness/counters/count_component.h"
#include "harness/counters/excused_counts.h"
#include "harness/counters/pieces.h"
#include "harness/counters/pins.h"
#include "harness/counters/process_calls.h"
#include "harness/counters/trace_component.h"
#include "harness/parity/card_exceptions.h"
#include "harness/parity/tier.h"
#include "harness/record/record.h"
#include "src/common/one_line.h"
#include "src/formats/file_lock.h"

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
  for (const auto& [name, map] : counter_maps())
    snapshot.*map = payload["maps"][name].get<std::map<std::string, std::int64_t>>();
  return snapshot;
}

json maps_of(const CounterSnapshot& snapshot) {
  json maps;
  for (const auto& [name, map] : counter_maps()) maps[name] = snapshot.*map;
  return maps;
}

// In the child: memory over the cell's life and, on a CUDA device, a traced pass; with what is wrong with either, and
// with the kernels and library products that the run asked for.
json observe(const Cell& cell, const CountedRun& run, std::uint64_t seed, bool trace_all) {
  const auto memory = case_memory(*cell.component, cell.variant, cell.setting(), seed);
  std::optional<DeviceActivity> activity;
  if (trace_all || cell.device == c10::DeviceType::CUDA)
    activity = trace_run(*cell.component, cell.variant, cell.setting(), seed);
  json row = device_activity_fields(activity);
  row["memory"] = to_json(memory);
  row["launches_by_kernel"] = run.counters.launches_by_kernel;
  row["products_by_shape"] = run.counters.products_by_shape;
  row["process_calls"] = run.counters.process_calls;
  row["layout"] = run.counters.layout;
  for (const Choice& choice : run.choices) row["choices"][choice.of] = choice.taken + "; " + choice.why;
  return {{"row", row},
          {"failures",
           {memory.leak(), activity ? trace_failure(*activity) : "",
            device_limits_broken(cell, run.counters, !run.choices.empty())}}};
}

// In the child: every selected variant of one twin. Two threads always: allocation counts of parallel operators depend
// on their number.
json count(const std::vector<Cell>& cells, std::uint64_t seed, bool trace_all) {
  at::set_num_threads(2);
  json payload = {{"cells", json::array()}, {"proofs", json::array()}};
  std::map<Variant, CountedRun> runs;
  const Cell& first = cells.front();
  const auto setting = first.setting();
  for (const auto& cell : cells) {
    const CountedRun& run = runs[cell.variant] = count_run(*cell.component, cell.variant, setting, seed);
    payload["cells"].push_back({{"cell", cell.name()},
                                {"values", values_of(run.counters)},
                                {"by_name", run.counters.by_name},
                                {"maps", maps_of(run.counters)},
                                {"observed", observe(cell, run, seed, trace_all)}});
  }
  if (!runs.count(Variant::kBaseline) || !runs.count(Variant::kOptimized)) return payload;
  for (const auto& proof : check_proof(*first.component, setting, runs[Variant::kBaseline], runs[Variant::kOptimized]))
    payload["proofs"].push_back(
        {{"component", first.component->spec.id()},
         {"device", to_string(first.device)},
         {"dtype", to_string(first.dtype)},
         {"case", first.input_case->name},
         {"counter", proof.counter},
         {"formula", proof.formula},
         {"baseline", {{"expected", proof.baseline_expected}, {"measured", proof.baseline_measured}}},
         {"optimized", {{"expected", proof.optimized_expected}, {"measured", proof.optimized_measured}}},
         {"verdict", proof.pass ? "pass" : "fail"},
         {"reason", proof.reason}});
  return payload;
}

// A steady run that ends with more memory than it began with would exhaust any machine in the end.
// Not of LibTorch's operators on a card, whose blocks differ and whose autograd lets go late: lives tell of them.
std::string growth_of(const Cell& cell, const CounterSnapshot& snapshot) {
  return snapshot.live_bytes == 0 || counts_blocks(cell.variant, cell.setting())
             ? ""
             : "a steady run keeps " + std::to_string(snapshot.live_bytes) + " bytes of tensor memory";
}

// Cells grouped by component, device, dtype and case, in their order.
std::vector<std::vector<Cell>> by_twin(const std::vector<Cell>& cells) {
  std::vector<std::vector<Cell>> twins;
  for (const auto& cell : cells) {
    const bool same = !twins.empty() && twins.back().front().component == cell.component &&
                      twins.back().front().device == cell.device && twins.back().front().dtype == cell.dtype &&
                      twins.back().front().input_case == cell.input_case;
    if (!same) twins.emplace_back();
    twins.back().push_back(cell);
  }
  return twins;
}

}  // namespace

int counters_command(const CommandOptions& options, const std::string& pins_file, bool pin, bool trace_all) {
  auto pins = Pins::load(pins_file);
  const TimeBudget budget(options.minutes);
  const Tier tier = options.quick ? Tier::kQuick : tier_named(options.tier);
  const Shard shard = shard_named(options.shard);
  auto cells = selected_cells(options);
  std::erase_if(cells, [&](const Cell& cell) { return !shard.has(case_name(cell)); });
  Ledger ledger;
  for (const auto& cell : cells) ledger.plan(cell.name());
  set_aside_missing_device(cells, options, ledger);
  Record record = open_record(options, "counters");
  const std::string sample = sample_of(options, record);
  std::size_t unsampled = 0, cut = 0;
  const auto leave_out = [&](const Cell& cell, const std::string& why) {
    record.add("counters", {{"cell", cell.name()},
                            {"verdict", "skip"},
                            {"reason", why},
                            {"values", json::object()},
                            {"by_name", json::object()},
                            {"pinned", nullptr}});
  };
  std::erase_if(cells, [&](const Cell& cell) {
    const std::string limit = library_limit_of(cell.component->spec, cell.variant, cell.setting());
    if (limit.empty()) return false;
    ledger.record(cell.name(), Outcome::kSkip, "LibTorch's own way on a card: " + limit);
    leave_out(cell, "LibTorch's own way on a card: " + limit);
    return true;
  });
  std::erase_if(cells, [&](const Cell& cell) {
    const std::string why = not_sampled(cell, tier, sample);
    if (why.empty()) return false;
    ledger.record(cell.name(), Outcome::kSkip, why);
    leave_out(cell, why + " (sample " + sample + ")");
    ++unsampled;
    return true;
  });
  cells = most_valuable_first(std::move(cells), sample);
  std::vector<Batch> batches;
  const auto twins = by_twin(cells);
  std::map<std::string, const std::vector<Cell>*> cells_of;
  for (std::size_t first = 0; first < twins.size();) {
    std::vector<std::string> members;
    const auto* component = twins[first].front().component;
    std::size_t last = first;
    for (; last < twins.size() && twins[last].front().component == component; ++last) {
      cells_of[twins[last].front().name()] = &twins[last];
      members.push_back(twins[last].front().name());
    }
    batches.push_back(limited_batch(options, component->spec.id(), std::move(members),
                                    [&twins, &options, first, trace_all](std::size_t member) {
                                      return MemberOutcome{count(twins[first + member], options.seed, trace_all), true};
                                    }));
    first = last;
  }
  const auto on_left_out = [&](const std::string& twin) {
    for (const auto& cell : *cells_of.at(twin)) {
      ledger.record(cell.name(), Outcome::kInconclusive, budget.reason());
      leave_out(cell, budget.reason());
      ++cut;
    }
  };
  std::set<std::string> newly_pinned;
  bool all_counted = run_with_progress(
      batches, record,
      [&](const JobResult& job) {
        if (!job.ok()) {
          for (const auto& cell : *cells_of.at(job.name)) {
            record_failure(ledger, cell.name(), job);
            record.add("counters", {{"cell", cell.name()},
                                    {"verdict", "error"},
                                    {"reason", failure_of(job)},
                                    {"values", json::object()},
                                    {"by_name", json::object()},
                                    {"pinned", nullptr}});
          }
          return;
        }
        std::string proof_broken;  // belongs to both variants: said with the first cell
        for (const auto& proof : job.value["proofs"]) {
          record.add("proofs", proof);
          if (proof["verdict"] == "fail")
            proof_broken += (proof_broken.empty() ? "" : "; ") + proof["counter"].get<std::string>() + ": " +
                            proof["reason"].get<std::string>();
        }
        for (const auto& counted : job.value["cells"]) {
          const auto name = counted["cell"].get<std::string>();
          const auto cell = std::find_if(cells_of.at(job.name)->begin(), cells_of.at(job.name)->end(),
                                         [&](const Cell& one) { return one.name() == name; });
          auto measured = snapshot_from(counted);
          if (!ProcessCallScope::counts_here() && pins.find(name))  // a sanitizer has those functions
            measured.process_calls = pins.find(name)->process_calls;
          if (pin) {
            pins.set(name, measured);
            newly_pinned.insert(name);
          }
          std::string broken;
          for (const auto& reason :
               {pins.check(name, measured).reason, growth_of(*cell, measured), std::exchange(proof_broken, "")})
            if (!reason.empty()) broken += (broken.empty() ? "" : "; ") + reason;
          for (const auto& failure : counted["observed"]["failures"])
            if (failure != "") broken += (broken.empty() ? "" : "; ") + failure.get<std::string>();
          const auto* pinned = pins.find(name);
          json row = {{"cell", name},
                      {"verdict", broken.empty() ? "pass" : "fail"},
                      {"reason", broken},
                      {"values", counted["values"]},
                      {"by_name", counted["by_name"]},
                      {"pinned", pinned ? values_of(*pinned) : json(nullptr)}};
          row.update(counted["observed"]["row"]);
          record.add("counters", row);
          if (broken.empty())
            ledger.record(name, Outcome::kPass);
          else
            ledger.record(name, Outcome::kFail, broken);
        }
      },
      budget, on_left_out);
  if (pin && all_counted) {
    // Cells that no longer exist leave the file with the next pin; a filter touches only its own cells.
    std::set<std::string> existing;
    for (const auto& cell : all_cells()) existing.insert(cell.name());
    std::vector<std::string> vanished;
    for (const auto& [cell, snapshot] : pins.cells())
      if (!existing.count(cell) && cell.find("/cuda/") == std::string::npos) vanished.push_back(cell);
    const FileLock lock(pins_file);
    Pins latest = Pins::load(pins_file);  // what others have pinned since stays
    for (const auto& cell : newly_pinned) latest.set(cell, *pins.find(cell));
    for (const auto& cell : vanished) latest.remove(cell);
    latest.save(pins_file);
    std::cout << "pinned " << cells.size() - cut << " cells in " << one_line(pins_file)
              << (vanished.empty() ? "" : ", dropped " + std::to_string(vanished.size())) << '\n';
  }
  std::set<const Component*> counted;
  for (const auto& cell : cells)
    if (cell.device.is_cpu() && counted.insert(cell.component).second)
      if (const std::string whole = never_in_pieces(*cell.component, pins); !whole.empty()) {
        ledger.plan(cell.component->spec.id());
        ledger.record(cell.component->spec.id(), Outcome::kFail, whole);
      }
  std::cout << "counters: " << cells.size() - cut << " cells\n";
  print_left_out(options, tier == Tier::kQuick, sample, unsampled, cut, budget);
  return finish("counters", options, ledger, record);
}

}  // namespace twinbench

// Tables, pins and verdict of `twinbench kernels`.
#include "harness/command/kernels.h"

#include <ATen/Context.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>

#include "harness/command/kernel_cells.h"
#include "harness/ledger/ledger.h"
#include "harness/simt/counting/bounds.h"
#include "harness/simt/counting/counts_file.h"
#include "harness/terminal/table.h"

namespace twinbench {
namespace {

using kernels::simt::Breach;
using kernels::simt::CountsFile;
using kernels::simt::KernelSummary;
using nlohmann::json;

constexpr std::size_t kWorstLines = 3;

std::string decimal(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
double rounded(double value, double step) { return std::round(value / step) * step; }

// Everything that was learnt of a cell.
struct CellResult {
  CountedCell counted;
  std::vector<KernelSummary> kernels;
  std::vector<CellTime> times;  // a card each
  std::string error;            // the run threw
};

// Modelled figures are rounded, so that a pin is not broken by the last digit of an exponential.
json time_json(const CellTime& time) {
  if (!time.unknown.empty()) return {{"unknown", time.unknown}};
  return {{"microseconds", decimal(time.seconds * 1e6, 2)},
          {"floor_share", decimal(time.seconds > 0 ? time.floor / time.seconds : 0, 3)},
          {"limiter", time.limiter}};
}

json pinned_json(const CellResult& result) {
  json cell = json::object();
  for (const KernelSummary& kernel : result.kernels) cell[kernel.kernel] = to_json(kernel, kWorstLines);
  for (const CellTime& time : result.times) cell["modelled " + time.card] = time_json(time);
  return cell;
}

json detailed_json(const CellResult& result) {
  json cell = {{"cell", result.counted.name}, {"timed", result.counted.timed}, {"products", result.counted.products}};
  if (!result.error.empty()) cell["error"] = result.error;
  for (const KernelSummary& kernel : result.kernels) cell["kernels"][kernel.kernel] = to_json(kernel, SIZE_MAX);
  for (const CellTime& time : result.times) {
    json row = time_json(time);
    row["card"] = time.card;
    row["floor_microseconds"] = rounded(time.floor * 1e6, 1e-3);
    for (const auto& part : time.parts) {
      json terms = json::object();
      for (const auto& [name, seconds] : part.time.terms) terms[name] = rounded(seconds * 1e6, 1e-3);
      row["parts"].push_back({{"name", part.name},
                              {"microseconds", rounded(part.time.seconds * 1e6, 1e-3)},
                              {"limiter", part.time.limiter},
                              {"terms_microseconds", terms}});
    }
    cell["modelled"].push_back(row);
  }
  return cell;
}

CellResult examine(const Cell& cell, const KernelsOptions& options, const std::vector<model::Card>& cards,
                   const model::CompiledKernels& compiled) {
  CellResult result;
  try {
    const std::string& items = cell.component->spec.batch_size;
    const bool many = !items.empty() && cell.setting().size(items) >= options.many_items;
    result.counted = count_cell(cell, options.seed, many ? options.most_threads_of_many : options.most_threads);
  } catch (const std::exception& error) {
    result.counted.name = cell.name();
    result.error = error.what();
    return result;
  }
  result.kernels = kernels::simt::summarise(result.counted.launches);
  for (const model::Card& card : cards) result.times.push_back(model_cell(card, compiled, result.counted));
  return result;
}

void add_total(Table& table, const std::string& kernel, const std::string& cell, const char* what,
               const kernels::simt::AccessTotals& totals) {
  if (totals.requests == 0) return;
  table.add_row({kernel, cell, std::string("all ") + what, std::to_string(totals.requests),
                 decimal(totals.mean_lanes(), 1), std::to_string(totals.ideal), std::to_string(totals.units),
                 decimal(totals.factor(), 2)});
}

// Of each kernel and cell the totals and the lines that take more than they need.
void print_counts(const std::vector<CellResult>& results) {
  using Align = Table::Align;
  Table table({{"kernel"},
               {"cell"},
               {"source line"},
               {"requests", Align::kRight},
               {"lanes", Align::kRight},
               {"ideal", Align::kRight},
               {"counted", Align::kRight},
               {"factor", Align::kRight}});
  for (const CellResult& result : results)
    for (const KernelSummary& kernel : result.kernels) {
      const std::string sampled = kernel.is_sample() ? " (sampled)" : "";
      add_total(table, kernel.kernel, result.counted.name + sampled, "loads", kernel.loads);
      add_total(table, kernel.kernel, result.counted.name + sampled, "stores", kernel.stores);
      add_total(table, kernel.kernel, result.counted.name + sampled, "shared", kernel.shared);
      for (const auto& line : kernel.lines)
        if (line.totals.units > line.totals.ideal)
          table.add_row({kernel.kernel, result.counted.name + sampled, line.at + " " + line.kind(),
                         std::to_string(line.totals.requests), decimal(line.totals.mean_lanes(), 1),
                         std::to_string(line.totals.ideal), std::to_string(line.totals.units),
                         decimal(line.totals.factor(), 2)});
    }
  table.print(std::cout);
}

void print_budgets(const std::vector<CellResult>& results, const std::vector<model::Card>& cards,
                   const model::CompiledKernels& compiled) {
  using Align = Table::Align;
  Table table({{"kernel"},
               {"card"},
               {"registers", Align::kRight},
               {"spilled bytes", Align::kRight},
               {"warps an SM", Align::kRight},
               {"instructions", Align::kRight},
               {"loads in flight", Align::kRight}});
  std::map<std::string, bool> kernels;
  for (const CellResult& result : results)
    for (const KernelSummary& kernel : result.kernels) kernels[kernel.kernel] = true;
  for (const auto& [kernel, seen] : kernels)
    for (const model::Card& card : cards) {
      const model::KernelFigures* figures = compiled.find(kernel, card.architecture);
      if (figures == nullptr) {
        table.add_row({kernel, card.name, "not pinned", "", "", "", ""});
        continue;
      }
      table.add_row({kernel, card.name, std::to_string(figures->registers), std::to_string(figures->spill_bytes),
                     decimal(figures->warps_per_multiprocessor, 0), decimal(figures->instructions, 0),
                     decimal(figures->loads_in_flight, 1)});
    }
  std::cout << '\n';
  table.print(std::cout);
}

void print_times(const std::vector<CellResult>& results) {
  using Align = Table::Align;
  Table table({{"cell"},
               {"card"},
               {"modelled us", Align::kRight},
               {"floor us", Align::kRight},
               {"floor / modelled", Align::kRight},
               {"limiter of the longest part"}});
  for (const CellResult& result : results) {
    if (!result.counted.timed) continue;
    for (const CellTime& time : result.times)
      if (!time.unknown.empty())
        table.add_row(
            {result.counted.name, time.card, "unknown", "", "", "no pinned figures: " + time.unknown.front()});
      else
        table.add_row({result.counted.name, time.card, decimal(time.seconds * 1e6, 1), decimal(time.floor * 1e6, 1),
                       decimal(time.seconds > 0 ? 100 * time.floor / time.seconds : 0, 0) + " %", time.limiter});
  }
  if (table.rows() == 0) return;
  std::cout << "\nModelled times, not measured ones (about 40 %):\n";
  table.print(std::cout);
}

// What fails, in words. Bounds are judged where the documents' sizes are run: small cases are all tail.
std::vector<std::string> failures_of(const std::vector<CellResult>& results, const CountsFile& pins,
                                     const KernelsOptions& options, double most_multiprocessors) {
  std::vector<std::string> failures;
  std::map<std::string, json> counted;
  std::vector<Breach> breaches;
  for (const CellResult& result : results) {
    if (!result.error.empty()) {
      failures.push_back(result.counted.name + ": " + result.error);
      continue;
    }
    counted[result.counted.name] = pinned_json(result);
    if (!options.pin)
      for (std::string& text : pins.compare(result.counted.name, counted[result.counted.name]))
        failures.push_back(std::move(text));
    if (!result.counted.timed) continue;
    for (const KernelSummary& kernel : result.kernels)
      for (Breach& breach : breaches_of(kernel, static_cast<std::uint64_t>(most_multiprocessors)))
        breaches.push_back(std::move(breach));
  }
  const bool complete = options.filter == "." && !options.timed_only;
  if (options.pins_only) breaches.clear();
  for (std::string& text : pins.judge(breaches, complete && !options.pins_only)) failures.push_back(std::move(text));
  if (complete)
    for (std::string& text : pins.vanished(counted)) failures.push_back(std::move(text));
  return failures;
}

}  // namespace

CLI::App* add_kernels_command(CLI::App& program, KernelsOptions& options) {
  auto* command = program.add_subcommand(
      "kernels", "What every kernel touches, counted on the host; what compilers say; modelled time by card");
  command->add_option("--filter", options.filter, "Regular expression on cells of device simt")->capture_default_str();
  command->add_option("--pins", options.pins, "The checked-in counts")->capture_default_str();
  command->add_option("--cards", options.cards, "Folder of cards")->capture_default_str();
  command->add_option("--seed", options.seed, "Seed of every input")->capture_default_str();
  command->add_flag("--pin", options.pin, "Write what was counted into the file: the one way to change it");
  command->add_flag("--pins-only", options.pins_only, "Compare with the pins, do not judge by the bounds");
  command->add_flag("--timed", options.timed_only, "Timed cases only");
  command->add_flag("--json", options.as_json, "As JSON, every line and every term of the model");
  return command;
}

int kernels_command(const KernelsOptions& options) {
  at::globalContext().setDeterministicFillUninitializedMemory(true);
  const std::vector<model::Card> cards = model::load_cards(options.cards);
  const auto compiled = model::CompiledKernels::load(options.budgets, options.machine_code);
  CountsFile pins = CountsFile::load(options.pins);
  double most_multiprocessors = 0;
  for (const model::Card& card : cards) most_multiprocessors = std::max(most_multiprocessors, card.multiprocessors);
  std::vector<CellResult> results;
  for (const Cell& cell : kernel_cells(options.filter))
    if (!options.timed_only || cell.input_case->timed) results.push_back(examine(cell, options, cards, compiled));
  if (results.empty()) return kExitInconclusive;

  if (options.as_json) {
    json cells = json::array();
    for (const CellResult& result : results) cells.push_back(detailed_json(result));
    std::cout << json({{"about", "times are modelled, not measured"}, {"cells", cells}}).dump(1) << '\n';
  } else {
    print_counts(results);
    print_budgets(results, cards, compiled);
    print_times(results);
  }
  const auto failures = failures_of(results, pins, options, most_multiprocessors);
  if (options.pin) {
    for (const CellResult& result : results)
      if (result.error.empty()) pins.set(result.counted.name, pinned_json(result));
    pins.save(options.pins);
  }
  for (const std::string& text : failures) std::cerr << "FAIL: " << text << '\n';
  std::cerr << "kernels: " << results.size() << " cells, " << failures.size() << " failures\n";
  return failures.empty() ? kExitPass : kExitFailure;
}

}  // namespace twinbench

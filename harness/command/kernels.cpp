// Tables, pins and verdict of `twinbench kernels`.
#include "harness/command/kernels.h"

#include <ATen/Context.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <iostream>
#include <map>
#include <set>

#include "harness/command/command.h"
#include "harness/command/jobs.h"
#include "harness/command/kernel_cells.h"
#include "harness/command/kernel_cost.h"
#include "harness/command/kernels_record.h"
#include "harness/ledger/ledger.h"
#include "harness/parity/tier.h"
#include "harness/runner/interruption_watch.h"
#include "harness/runner/told_error.h"
#include "harness/simt/counting/bounds.h"
#include "harness/simt/counting/counts_file.h"
#include "harness/terminal/table.h"
#include "src/common/error.h"
#include "src/common/one_line.h"
#include "src/formats/file_lock.h"

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
  std::vector<CellTime> times;                          // a card each, of the way that is the fastest there
  std::map<std::string, std::vector<CellTime>> of_way;  // of every way that set-up could have taken; may be empty
  std::string error;                                    // the run threw
};

json time_json(const CellTime& time) {
  if (!time.unknown.empty()) return {{"unknown", time.unknown}};
  return to_json(pin_of(time));
}
json with_way(json row, const CellTime& time) {
  if (!time.way.empty()) row["way"] = time.way;
  return row;
}

json pinned_json(const CellResult& result) {
  json cell = json::object();
  for (const KernelSummary& kernel : result.kernels) cell[kernel.kernel] = to_json(kernel, kWorstLines);
  for (const CellTime& time : result.times) cell[kernels::simt::kNoCount + time.card] = with_way(time_json(time), time);
  for (const Choice& choice : result.counted.choices) cell["choice"][choice.of] = choice.taken;
  return cell;
}

json detailed_json(const CellResult& result) {
  json cell = {{"cell", result.counted.name}, {"timed", result.counted.timed}, {"products", result.counted.products}};
  if (!result.error.empty()) cell["error"] = result.error;
  for (const KernelSummary& kernel : result.kernels) cell["kernels"][kernel.kernel] = to_json(kernel, SIZE_MAX);
  for (const CellTime& time : result.times) {
    json row = with_way(time_json(time), time);
    row["card"] = time.card;
    for (const auto& [way, times] : result.of_way)
      for (const CellTime& other : times)
        if (other.card == time.card) row["ways"][way] = time_json(other);
    row["floor_microseconds"] = rounded(time.floor * 1e6, 1e-3);
    row["arithmetic_microseconds"] = rounded(time.arithmetic * 1e6, 1e-3);
    row["known_share"] = rounded(time.known_share, 1e-3);
    for (const auto& part : time.parts) {
      json terms = json::object();
      for (const auto& [name, seconds] : part.time.terms) terms[name] = rounded(seconds * 1e6, 1e-3);
      row["parts"].push_back({{"name", part.name},
                              {"microseconds", rounded(part.time.seconds * 1e6, 1e-3)},
                              {"limiter", part.time.limiter},
                              {"warp_instructions", std::round(part.work.instructions)},
                              {"warp_fma_instructions", std::round(part.work.fma_instructions)},
                              {"executions", part.work.executions},
                              {"terms_microseconds", terms}});
    }
    cell["modelled"].push_back(row);
  }
  return cell;
}

// Models every way that set-up could have taken, and gives each card the one that is the fastest there.
void compare_ways(const Cell& cell, const KernelsOptions& options, const std::vector<model::Card>& cards,
                  const model::CompiledKernels& compiled, CellResult& result) {
  for (const Choice& choice : result.counted.choices) {
    if (choice.ways.size() < 2) continue;
    for (CellTime& time : result.times) time.way = choice.taken;
    result.of_way[choice.taken] = result.times;
    for (const std::string& way : choice.ways) {
      if (way == choice.taken) continue;
      const CountedCell counted = count_cell(cell, options.seed, options.most_threads, way);
      for (std::size_t i = 0; i < cards.size(); ++i) {
        CellTime time = model_cell(cards[i], compiled, counted);
        time.way = way;
        if (time.unknown.empty() && time.seconds < result.times[i].seconds) result.times[i] = time;
        result.of_way[way].push_back(std::move(time));
      }
    }
  }
}

// Where nothing can be measured, a way is taken by expected times: it may not be much slower than the best one, summed
// over the cards.
std::string wrong_choice(const CellResult& result) {
  constexpr double kMost = 1.1;
  const auto sum = [](const std::vector<CellTime>& times) {
    double seconds = 0;
    for (const CellTime& time : times) seconds += time.unknown.empty() ? time.seconds : INFINITY;
    return seconds;
  };
  for (const Choice& choice : result.counted.choices) {
    const auto taken = result.of_way.find(choice.taken);
    if (taken == result.of_way.end()) continue;
    for (const auto& [way, times] : result.of_way)
      if (sum(taken->second) > kMost * sum(times))
        return result.counted.name + ": takes " + choice.taken + " for " + choice.of + ", modelled " +
               decimal(sum(taken->second) * 1e6, 1) + " us over the cards; " + way + " takes " +
               decimal(sum(times) * 1e6, 1) + " us: mend its expected times";
  }
  return "";
}

CellResult examine(const Cell& cell, const KernelsOptions& options, const std::vector<model::Card>& cards,
                   const model::CompiledKernels& compiled) {
  CellResult result;
  try {
    const std::string& items = cell.component->spec.batch_size;
    const bool many = !items.empty() && cell.setting().size(items) >= options.many_items;
    result.counted = count_cell(cell, options.seed, many ? options.most_threads_of_many : options.most_threads);
  } catch (const std::exception& error) {
    if (refused_memory_in(error.what()) || cause_of(told(error)) != Cause::kWork)
      throw;  // it is refused to this process, and so to the other cells
    result.counted.name = cell.name();
    result.counted.timed = cell.input_case->timed;
    result.error = error.what();
    return result;
  }
  result.kernels = kernels::simt::summarise(result.counted.launches);
  for (const model::Card& card : cards) result.times.push_back(model_cell(card, compiled, result.counted));
  if (cell.input_case->timed) compare_ways(cell, options, cards, compiled, result);
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
  std::cout
      << "Loads in flight: the mean over the code as it stands, not over what runs. What runs is counted by source\n"
         "line, and an unrolled loop and its tail share their lines: weights would split evenly between them.\n";
}

void print_times(const std::vector<CellResult>& results) {
  using Align = Table::Align;
  Table table({{"cell"},
               {"card"},
               {"modelled us", Align::kRight},
               {"floor us", Align::kRight},
               {"floor / modelled", Align::kRight},
               {"places known", Align::kRight},
               {"limiter of the longest part"},
               {"way"}});
  for (const CellResult& result : results) {
    if (!result.counted.timed) continue;
    for (const CellTime& time : result.times)
      if (!time.unknown.empty())
        table.add_row(
            {result.counted.name, time.card, "unknown", "", "", "", "no pinned figures: " + time.unknown.front(), ""});
      else
        table.add_row({result.counted.name, time.card, decimal(time.seconds * 1e6, 1), decimal(time.floor * 1e6, 1),
                       decimal(time.seconds > 0 ? 100 * time.floor / time.seconds : 0, 0) + " %",
                       decimal(100 * time.known_share, 0) + " %", time.limiter, time.way});
  }
  if (table.rows() == 0) return;
  std::cout << "\nModelled times, not measured ones (about 40 %):\n";
  table.print(std::cout);
}

// Bounds on counts are judged where the documents' sizes are run, small cases are all tail, and in the cells of the
// component whose kernel it is: one that is composed of others takes their kernels to sizes of its own. No cost may
// declare more than was moved, and no modelled time may be too short for the arithmetic.
void add_breaches(const CellResult& result, double most_multiprocessors, std::vector<Breach>& breaches) {
  const std::string component = result.counted.name.substr(0, result.counted.name.find('/'));
  for (const KernelSummary& kernel : result.kernels) {
    const std::string owner = owner_of(kernel.kernel);
    if (!result.counted.timed || (!owner.empty() && owner != component)) continue;
    for (Breach& breach : breaches_of(kernel, static_cast<std::uint64_t>(most_multiprocessors)))
      breaches.push_back(std::move(breach));
  }
  for (Breach& breach : cost_breaches(result.counted)) breaches.push_back(std::move(breach));
  for (const CellTime& time : result.times)
    if (time.unknown.empty() && time.arithmetic > time.seconds)
      breaches.push_back({component, "arithmetic", "", time.arithmetic / time.seconds,
                          result.counted.name + ": modelled " + decimal(time.seconds * 1e6, 2) + " us on " + time.card +
                              ", but the FLOPs of its cost alone take " + decimal(time.arithmetic * 1e6, 2) + " us"});
}

// What fails of a cell's counts, in words.
std::vector<std::string> count_failures(const CellResult& result, const CountsFile& pins, const KernelsOptions& options,
                                        double most_multiprocessors) {
  std::vector<std::string> failures;
  if (!options.pin && options.sizes.empty()) failures = pins.compare(result.counted.name, pinned_json(result));
  if (std::string text = wrong_choice(result); !text.empty()) failures.push_back(std::move(text));
  if (options.pins_only) return failures;
  std::vector<Breach> breaches;
  add_breaches(result, most_multiprocessors, breaches);
  for (std::string& text : pins.judge(breaches, false)) failures.push_back(std::move(text));
  return failures;
}

// What fails of the file as a whole, where everything was counted.
std::vector<std::string> file_failures(const std::vector<CellResult>& results, const CountsFile& pins,
                                       const KernelsOptions& options, double most_multiprocessors) {
  if (options.filter != "." || options.timed_only || !options.sizes.empty()) return {};
  std::map<std::string, json> counted;
  std::vector<Breach> breaches;
  for (const CellResult& result : results) {
    counted[result.counted.name] = nullptr;
    add_breaches(result, most_multiprocessors, breaches);
  }
  std::vector<std::string> failures = pins.vanished(counted);
  if (!options.pins_only)
    for (std::string& text : pins.judge(breaches, true)) failures.push_back(std::move(text));
  return failures;
}

}  // namespace

int kernels_command(const KernelsOptions& options, CommandOptions common) {
  common.seed = options.seed;
  common.out = options.out;
  common.sample = options.sample;
  Record record = open_record(common, "kernels");
  at::globalContext().setDeterministicFillUninitializedMemory(true);
  const std::vector<model::Card> cards = model::load_cards(options.cards);
  const auto compiled = model::CompiledKernels::load(options.budgets, options.machine_code);
  CountsFile pins = CountsFile::load(options.pins);
  double most_multiprocessors = 0;
  for (const model::Card& card : cards) most_multiprocessors = std::max(most_multiprocessors, card.multiprocessors);
  if (options.pin && !options.sizes.empty())
    throw Error(ErrorKind::kBadArgument, "--pin", "with --size", "pin the cases of the specifications alone");
  const TimeBudget budget(options.minutes);
  std::deque<Case> sized;
  std::vector<Cell> cells = kernel_cells(options.filter);
  for (Cell& cell : cells) {
    if (options.sizes.empty()) break;
    Case& other = sized.emplace_back(*cell.input_case);
    override_sizes(other, options.sizes);
    for (const std::string& size : options.sizes) other.name += " " + size;
    cell.input_case = &other;
  }
  // What a limit cuts off now is counted in another revision.
  if (options.minutes > 0) cells = most_valuable_first(std::move(cells), sample_of(common, record));
  std::vector<CellResult> results;
  std::vector<std::string> left_out;
  for (const Cell& cell : cells) {
    if (options.timed_only && !cell.input_case->timed) continue;
    if (interrupted() || budget.spent())
      left_out.push_back(cell.name());
    else
      results.push_back(examine(cell, options, cards, compiled));
  }
  if (results.empty() && left_out.empty()) return kExitInconclusive;

  if (options.as_json) {
    json cells = json::array();
    for (const CellResult& result : results) cells.push_back(detailed_json(result));
    std::cout << json({{"about", "times are modelled, not measured"}, {"cells", cells}}).dump(1) << '\n';
  } else {
    print_counts(results);
    print_budgets(results, cards, compiled);
    print_times(results);
  }
  Ledger ledger;
  std::set<std::string> told;  // a kernel that breaks a bound does so in many cells
  const auto tell = [&](const std::string& text) {
    if (told.insert(text).second) std::cerr << "FAIL: " << one_line(text) << '\n';
  };
  if (options.pin) {
    const FileLock lock(options.pins);
    pins = CountsFile::load(options.pins);  // what others have pinned since stays
    for (const CellResult& result : results)
      if (result.error.empty()) pins.set(result.counted.name, pinned_json(result));
    // Cells that no longer exist leave the file with the next pin; a filter touches only its own cells.
    std::set<std::string> existing;
    for (const Cell& cell : kernel_cells(".")) existing.insert(cell.name());
    const std::size_t dropped = pins.drop_others(existing);
    if (dropped > 0) std::cerr << "dropped " << dropped << " cells that are no more from " << options.pins << '\n';
    pins.save(options.pins);
  }
  for (const CellResult& result : results) {
    const std::string& name = result.counted.name;
    if (!result.error.empty()) tell(name + ": " + result.error);
    const auto failures =
        result.error.empty() ? count_failures(result, pins, options, most_multiprocessors) : std::vector<std::string>{};
    for (const std::string& text : failures) tell(text);
    if (options.sizes.empty())
      for (const std::string& text : changed_times(pins, name, result.times)) tell(text);
    if (result.counted.timed)
      add_modelled(record, ledger, pins, cards, name, result.times, failures, result.error);
    else  // counted only: the record's exit code knows it
      ledger.record(name,
                    !result.error.empty() ? Outcome::kError
                    : failures.empty()    ? Outcome::kPass
                                          : Outcome::kFail,
                    result.error.empty() && !failures.empty() ? failures.front() : result.error);
  }
  const std::string why = interrupted() ? "interrupted" : budget.reason();
  if (left_out.empty())
    for (const std::string& text : file_failures(results, pins, options, most_multiprocessors)) tell(text);
  for (const std::string& name : left_out) {
    if (!interrupted()) std::cerr << name << ": left out, " << why << '\n';
    if (!options.out.empty()) ledger.record(name, Outcome::kInconclusive, why);
  }
  if (interrupted() && !left_out.empty())
    std::cerr << "interrupted: " << left_out.size() << " of " << left_out.size() + results.size()
              << " were not finished; what was counted is kept\n";
  std::cerr << "kernels: " << results.size() << " cells, " << left_out.size() << " left out, " << told.size()
            << " failures\n";
  if (!options.out.empty()) {
    record.set_ledger(ledger.to_json());
    record.write(options.out);
  }
  return !told.empty() ? kExitFailure : left_out.empty() ? kExitPass : kExitInconclusive;
}

}  // namespace twinbench

// `twinbench instructions`: counts the instructions of one steady run of a small CPU cell of each kind, or of one timed
// size of each baseline, and holds them against the pins. Runs under Callgrind, which it starts itself.
#include <algorithm>
#include <iostream>
#include <optional>

#include "harness/command/command.h"
#include "harness/command/jobs.h"
#include "harness/instructions/count_instructions.h"
#include "harness/instructions/counted_cells.h"
#include "harness/instructions/instruction_pins.h"
#include "harness/instructions/under_callgrind.h"
#include "src/common/error.h"
#include "src/common/one_line.h"
#include "src/formats/file_lock.h"

namespace twinbench {
namespace {

nlohmann::json row_of(const std::string& cell, Outcome outcome, const std::string& reason) {
  return {
      {"cell", cell}, {"verdict", outcome == Outcome::kInconclusive ? "skip" : name_of(outcome)}, {"reason", reason}};
}

MemberOutcome counted(const Cell& cell, std::uint64_t seed) {
  const auto counts = count_instructions(cell, seed);
  return {
      nlohmann::json{{"total", counts.total}, {"own", counts.own}, {"unseen", counts.unseen}, {"seen", counts.seen}},
      true};
}

// All in one child: Valgrind translates LibTorch's code once in each process, which took longer than the counting.
std::vector<Batch> batch_of(const std::vector<Cell>& cells, const CommandOptions& options) {
  std::vector<std::string> members;
  for (const auto& cell : cells) members.push_back(cell.name());
  return {limited_batch(options, "instructions", std::move(members),
                        [cells, seed = options.seed](std::size_t member) { return counted(cells[member], seed); })};
}

}  // namespace

int instructions_command(CommandOptions options, const std::string& pins_file, bool pin, bool timed, char** arguments) {
  constexpr double kUnderCallgrind_s = 900;  // one cell, whose inputs are drawn there, too
  if (!options.time_limit_given) options.time_limit_s = std::max(options.time_limit_s, kUnderCallgrind_s);
  options.threads = 1;  // before the first pool of threads begins to wait: waiting is instructions, too
  if (options.device != "cpu")
    throw Error(ErrorKind::kBadArgument, "--device", options.device, "instructions are counted on the cpu only");
  const auto pins = InstructionPins::load(pins_file);
  if (callgrind_folder().empty()) return run_under_callgrind(arguments);
  const TimeBudget budget(options.minutes);
  const Shard shard = shard_named(options.shard);
  const std::string machine = counting_machine();
  const InstructionCells* const pinned = pins.of(machine);
  auto cells = selected_cells(options);
  const std::size_t selected = cells.size();
  cells = timed ? timed_baselines(cells) : counted_by_instructions(cells);
  std::erase_if(cells, [&](const Cell& cell) { return !shard.has(case_name(cell)); });
  Ledger ledger;
  for (const auto& cell : cells) ledger.plan(cell.name());
  Record record = open_record(options, "instructions");
  cells = most_valuable_first(std::move(cells), sample_of(options, record));
  if (pin)  // new ones first, so that pinning in pieces (--minutes) comes to an end
    std::stable_partition(cells.begin(), cells.end(),
                          [&](const Cell& cell) { return !pinned || pinned->count(cell.name()) == 0; });

  const auto batches = batch_of(cells, options);
  InstructionCells measured;  // what may be pinned
  std::size_t counted_cells = 0;
  const auto settle = [&](const std::string& cell, Outcome outcome, const std::string& reason, nlohmann::json row) {
    ledger.record(cell, outcome, reason);
    row.update(row_of(cell, outcome, reason));
    record.add("instructions", row);
  };
  const auto on_result = [&](const JobResult& job) {
    if (!job.ok()) return settle(job.name, Outcome::kError, failure_of(job), nlohmann::json::object());
    const InstructionCounts counts{job.value["total"], job.value["own"], job.value["unseen"], job.value["seen"]};
    ++counted_cells;
    std::optional<std::int64_t> known;
    if (pinned && pinned->count(job.name)) known = pinned->at(job.name);
    nlohmann::json row = {{"total", counts.total}, {"own", counts.own}};
    if (counts.unseen >= 0) row.update({{"unseen", counts.unseen}, {"seen", counts.seen}});
    const std::string remembering = remembering_of(counts);
    const Cell cell = find_cell(job.name);
    const bool in_operators = cell.variant == Variant::kBaseline && cell.component->spec.host_work.empty();
    const std::string padding = in_operators ? padding_of(counts) : "";
    row["pinned"] = known ? nlohmann::json(*known) : nlohmann::json(nullptr);
    // Whatever is pinned, and also where that is asked for or nothing is.
    if (!remembering.empty()) return settle(job.name, Outcome::kFail, remembering, row);
    if (pin && !padding.empty()) return settle(job.name, Outcome::kFail, padding, row);
    measured[job.name] = counts.total;
    if (pin) return settle(job.name, Outcome::kPass, "", row);
    if (!pinned)
      return settle(job.name, Outcome::kInconclusive, "no counts are pinned for this machine (" + machine + ")", row);
    std::string changed = instruction_change(job.name, known, counts.total);
    if (!padding.empty()) changed += (changed.empty() ? "" : "; ") + padding;
    settle(job.name, changed.empty() ? Outcome::kPass : Outcome::kFail, changed, row);
  };
  run_with_progress(batches, record, on_result, budget, [&](const std::string& cell) {
    settle(cell, Outcome::kInconclusive, budget.reason(), nlohmann::json::object());
  });
  if (pin && !measured.empty()) {  // also where time ran out: what is missing is named, and the exit code says so
    const FileLock lock(pins_file);
    auto latest = InstructionPins::load(pins_file);  // what others have pinned since stays
    for (const auto& [cell, count] : measured) latest.edit(machine)[cell] = count;
    latest.save(pins_file);
    std::cout << "pinned " << measured.size() << " cells of " << machine << " in " << one_line(pins_file) << '\n';
  }
  std::cout << "instructions: " << counted_cells << " cells on " << machine << "; of the " << selected
            << (timed ? " selected, the least timed one of each baseline and pass\n"
                      : " selected, one of each kind: the others are large, or differ in sizes and data only\n");
  if (!pinned && !pin)
    std::cout << "  no counts are pinned for this machine (" << machine
              << "); `twinbench instructions --pin` does it\n";
  return finish("instructions", options, ledger, record);
}

}  // namespace twinbench

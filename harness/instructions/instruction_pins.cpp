// Reading, comparing and writing the pinned instruction counts.
#include "harness/instructions/instruction_pins.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "src/common/error.h"
#include "src/formats/file_io.h"
#include "src/formats/json_text.h"

namespace twinbench {
namespace {

using Json = nlohmann::ordered_json;

// The same command on the same tree repeats to the last instruction. What the process did before (another filter,
// another folder's name, another machine) moves hash tables and heap, in most cells by less than 0.1 %, in host
// components by up to 0.75 %, and what is outside operators, where the observer's own bookkeeping lies, by up to 2.6 %.
// The first two: one part in so many.
constexpr std::int64_t kTotalMoves = 100, kOutsideMoves = 20, kFewInstructions = 64;

std::string percent(std::int64_t from, std::int64_t to) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.2f %%", from == 0 ? 100.0 : 100.0 * static_cast<double>(to - from) / from);
  return text;
}

}  // namespace

InstructionPins InstructionPins::load(const std::string& path) {
  InstructionPins pins;
  if (!std::filesystem::exists(path)) return pins;
  const Json json = read_json_file<Json>(path, "instruction pins", kCounts);
  const auto bad = [&](const std::string& where, const std::string& what) {
    return Error(
        ErrorKind::kBadFile, path + where, what,
        "it holds {machine: {cell: [instructions, of them outside operators]}}; `twinbench instructions --pin` "
        "writes it");
  };
  if (!json.is_object()) throw bad("", "not a JSON object");
  for (const auto& [machine, cells] : json.items()) {
    if (!cells.is_object()) throw bad(" machine " + machine, "not an object");
    auto& pinned = pins.machines_[machine];
    for (const auto& [cell, counts] : cells.items()) {
      if (!counts.is_array() || counts.size() != 2 || !counts[0].is_number_integer() || !counts[1].is_number_integer())
        throw bad(" cell " + cell, counts.dump());
      pinned[cell] = {.total = counts[0].get<std::int64_t>(), .outside_operators = counts[1].get<std::int64_t>()};
    }
  }
  return pins;
}

void InstructionPins::save(const std::string& path) const {
  std::string text = "{";
  const char* next_machine = "\n";
  for (const auto& [machine, cells] : machines_) {
    text += next_machine + Json(machine).dump() + ": {";
    next_machine = ",\n";
    const char* next_cell = "\n";
    for (const auto& [cell, counts] : cells) {
      text += next_cell + Json(cell).dump() + ": " + "[" + std::to_string(counts.total) + ", " +
              std::to_string(counts.outside_operators) + "]";
      next_cell = ",\n";
    }
    text += "\n}";
  }
  write_file(path, as_bytes(text + "\n}\n"));
}

const InstructionCells* InstructionPins::of(const std::string& machine) const {
  const auto found = machines_.find(machine);
  return found == machines_.end() ? nullptr : &found->second;
}

std::string instruction_change(const std::string& cell, const InstructionCounts* pinned,
                               const InstructionCounts& measured) {
  const std::string command = "`twinbench instructions --pin --filter '^" + cell + "$'`";
  if (!pinned) return "not pinned; pin it with " + command;
  std::string changed;
  const auto add = [&](const char* what, std::int64_t from, std::int64_t to, std::int64_t moves) {
    if (std::abs(to - from) <= from / moves + kFewInstructions) return;
    changed += (changed.empty() ? "" : ", ") + std::string(what) + " " + std::to_string(from) + " -> " +
               std::to_string(to) + " (" + percent(from, to) + ")";
  };
  add("instructions", pinned->total, measured.total, kTotalMoves);
  add("outside operators", pinned->outside_operators, measured.outside_operators, kOutsideMoves);
  return changed.empty() ? "" : changed + "; if this is meant, " + command;
}

std::string remembering_of(const InstructionCounts& counts) {
  constexpr std::int64_t kFew = 50'000;
  if (counts.unseen < 0 || counts.unseen <= counts.seen + counts.seen / 8 + kFew) return "";
  return "on contents never seen it takes " + std::to_string(counts.unseen) + " instructions, on the same again " +
         std::to_string(counts.seen) + " (" + percent(counts.unseen, counts.seen) +
         "): it keeps what it has computed from contents";
}

std::string padding_of(const InstructionCounts& baseline, bool backward) {
  constexpr std::int64_t kFewOperators = 200'000;
  const double share = static_cast<double>(baseline.outside_operators) / static_cast<double>(baseline.total);
  if (baseline.total < kFewOperators || share <= (backward ? 0.6 : 0.5)) return "";
  return std::to_string(baseline.outside_operators) + " of the baseline's " + std::to_string(baseline.total) +
         " instructions are outside operators: more than a baseline's may be, so it is padded";
}

}  // namespace twinbench

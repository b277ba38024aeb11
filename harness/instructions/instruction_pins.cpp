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
// components by up to 0.75 %. One part in so many:
constexpr std::int64_t kMoves = 100, kFewInstructions = 64;
constexpr std::uint64_t kMostInstructions = std::uint64_t{1} << 62;

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
    return Error(ErrorKind::kBadFile, path + where, what,
                 "it holds {machine: {cell: instructions}}; `twinbench instructions --pin` writes it");
  };
  if (!json.is_object()) throw bad("", "not a JSON object");
  for (const auto& [machine, cells] : json.items()) {
    if (!cells.is_object()) throw bad(" machine " + machine, "not an object");
    auto& pinned = pins.machines_[machine];
    for (const auto& [cell, count] : cells.items()) {
      if (!count.is_number_unsigned() || count.get<std::uint64_t>() > kMostInstructions)
        throw bad(" cell " + cell, count.dump());
      pinned[cell] = count.get<std::int64_t>();
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
    for (const auto& [cell, count] : cells) {
      text += next_cell + Json(cell).dump() + ": " + std::to_string(count);
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

std::string instruction_change(const std::string& cell, std::optional<std::int64_t> pinned, std::int64_t measured) {
  const std::string command = "`twinbench instructions --pin --filter '^" + cell + "$'`";
  if (!pinned) return "not pinned; pin it with " + command;
  if (std::abs(measured - *pinned) <= *pinned / kMoves + kFewInstructions) return "";
  return "instructions " + std::to_string(*pinned) + " -> " + std::to_string(measured) + " (" +
         percent(*pinned, measured) + "); if this is meant, " + command;
}

std::string remembering_of(const InstructionCounts& counts) {
  constexpr std::int64_t kFew = 50'000;
  if (counts.unseen < 0 || counts.unseen <= counts.seen + counts.seen / 8 + kFew) return "";
  return "on contents never seen it takes " + std::to_string(counts.unseen) + " instructions, on the same again " +
         std::to_string(counts.seen) + " (" + percent(counts.unseen, counts.seen) +
         "): it keeps what it has computed from contents";
}

std::string padding_of(const InstructionCounts& baseline) {
  constexpr std::int64_t kFewOperators = 200'000;
  const double share = static_cast<double>(baseline.own) / static_cast<double>(baseline.total);
  if (baseline.total < kFewOperators || share <= 0.3) return "";
  return std::to_string(baseline.own) + " of the baseline's " + std::to_string(baseline.total) +
         " instructions are its own, outside LibTorch: more than a baseline's may be, so it is padded";
}

}  // namespace twinbench

// The checked-in instruction counts (ci/instructions.json), by counting machine: written on purpose only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "harness/instructions/instruction_counts.h"

namespace twinbench {

using InstructionCells = std::map<std::string, std::int64_t>;  // by cell name

class InstructionPins {
 public:
  // A missing file holds none. Throws kBadFile, naming the place, for anything but {machine: {cell: instructions}}.
  static InstructionPins load(const std::string& path);
  // One line a cell, sorted. Throws kInputOutput.
  void save(const std::string& path) const;

  // nullptr where nothing was ever counted on such a machine.
  const InstructionCells* of(const std::string& machine) const;
  InstructionCells& edit(const std::string& machine) { return machines_[machine]; }

 private:
  std::map<std::string, InstructionCells> machines_;
};

// What changed by more than 1 %, in words; empty where nothing did. Nothing pinned: how to pin.
std::string instruction_change(const std::string& cell, std::optional<std::int64_t> pinned, std::int64_t measured);

// A baseline is written in operators. Where more than three tenths of its instructions are its own, it is padded,
// pinned or not: said in words, else empty. (Seen: up to 0.25, in backward passes 0.08.) Runs of a few operators say
// nothing; nor are baselines asked that declare work beside operators (`host_work`), whose pins alone hold it.
std::string padding_of(const InstructionCounts& baseline);

// What a run does follows from what its inputs hold, and hardly from what they held before: said in words where a run
// on contents never seen takes an eighth more than the next on the same ones, else empty. What is kept of contents,
// whole or by tile, is seen so without a clock. Honest runs differ by up to 30,000, small ones too.
std::string remembering_of(const InstructionCounts& counts);

}  // namespace twinbench

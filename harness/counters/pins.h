// The checked-in counters (ci/counters.json): read, compared exactly, written only by an explicit command. Torch-free.
#pragma once

#include <map>
#include <string>

#include "harness/counters/snapshot.h"

namespace twinbench {

struct PinVerdict {
  bool pass = false;
  bool pinned = false;  // the file knows the cell
  std::string reason;   // every changed counter, old -> new; or the command that pins the cell; empty where it passes
};

class Pins {
 public:
  // A missing file holds no pins. Throws kBadFile, naming the place, for anything but a JSON object of cells.
  static Pins load(const std::string& path);
  // One line a cell, sorted: a changed counter is a one-line diff. Throws kInputOutput. Written beside, then renamed.
  void save(const std::string& path) const;

  // Any drift, also for the better, fails: an improvement is pinned on purpose, not by accident.
  PinVerdict check(const std::string& cell, const CounterSnapshot& measured) const;
  void set(const std::string& cell, const CounterSnapshot& measured) { cells_[cell] = measured; }
  void remove(const std::string& cell) { cells_.erase(cell); }
  // nullptr where it is not pinned.
  const CounterSnapshot* find(const std::string& cell) const;
  const std::map<std::string, CounterSnapshot>& cells() const { return cells_; }

 private:
  std::map<std::string, CounterSnapshot> cells_;
};

}  // namespace twinbench

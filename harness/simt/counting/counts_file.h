// The checked-in counts (ci/kernel_counts.json): compared exactly, written only by an explicit command; and the reasons
// for which a kernel may break a bound.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "harness/simt/counting/bounds.h"

namespace twinbench::kernels::simt {

// Why a kernel may break a bound, and how far: at one line of the source, named by a part of its text, because line
// numbers move; without file and line by the kernel as a whole.
struct Reason {
  std::string kernel, bound;
  std::string file, line;  // "kernels/.../kernel.h", "a.child[flow] ="
  double limit = 0;        // the bound instead: the worst that is counted, rounded away from it to two digits
  std::string reason;      // a sentence
};

// Entries of a cell that begin so are kept beside its counts and compared elsewhere (harness/model/time_pin.h).
inline constexpr const char* kNoCount = "modelled ";

class CountsFile {
 public:
  // A missing file holds nothing. Throws kBadFile that names the place for anything but what save() writes, for a bound
  // that there is not, and for a repeated reason or one that is no sentence.
  static CountsFile load(const std::string& path);
  // A line a kernel of a cell. Throws kInputOutput.
  void save(const std::string& path) const;

  // Every difference in words; empty where the counts are equal. Line numbers may move, so they are not compared.
  std::vector<std::string> compare(const std::string& cell, const nlohmann::json& counted) const;
  // Cells in the file that were not counted: what is counted may only grow.
  std::vector<std::string> vanished(const std::map<std::string, nlohmann::json>& counted) const;
  void set(const std::string& cell, const nlohmann::json& counted) { cells_[cell] = counted; }

  // Breaches without a reason or past its limit, in words; the sources named lie in the working folder. `complete`:
  // everything was counted, so that a reason that nothing needs, or that allows more than is needed, is an error.
  std::vector<std::string> judge(const std::vector<Breach>& breaches, bool complete) const;

  // Lets go of the cells that are not among these; how many those were.
  std::size_t drop_others(const std::set<std::string>& existing);

  const std::map<std::string, nlohmann::json>& cells() const { return cells_; }

 private:
  std::map<std::string, nlohmann::json> cells_;  // cell -> kernel -> counts
  std::vector<Reason> reasons_;
};

}  // namespace twinbench::kernels::simt

// One more case a component, whose sizes, options and seed nobody knows before the revision is made: nothing can be
// tuned to it.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "src/registry.h"

namespace twinbench {

constexpr char kHeldOut[] = "held_out";  // the case's name
constexpr int kHeldOutDraws = 8;         // a draw may be no case: too large together, or refused by the component

// Operators that a run of the baseline dispatches, where its proof says so; else 0.
double baseline_dispatches(const Component& component, const Setting& complete);

// Elements of its inputs; an axis of length 0 counts as 1.
double input_elements(const Component& component, const Setting& complete);

// From 0 to 1, the same for a text everywhere.
double unit_draw(const std::string& text);
// Between the two, every order of magnitude alike, as `draw`, from 0 to 1, says.
std::int64_t between(std::int64_t low, std::int64_t high, double draw);

// A count or a real number: neither a switch nor a choice.
bool is_number(const OptionSpec& option);
// What the case gives it, or its default.
double value_of(const Case& one, const OptionSpec& option);

// Small cases from which others are drawn, and what these and the default give an option.
bool is_drawn_from(const Case& one);
std::set<double> listed_values(const Component& component, const OptionSpec& option);

// Sets options as `key` draws them, and says which are now other than the case has them ("; options noise 0.31"). Of
// those that variants see one in four stays, so that one that needs another (a key of the noise, noise) is seldom
// without it, and one that decides which sizes there are. Of the inputs' the numbers alone, one in four: a switch makes
// inputs for which a case has its sizes.
std::string draw_options(const Component& component, const std::string& key, Case& one);

struct HeldOutDraw {
  Case input_case;
  std::uint64_t seed = 0;
  std::string text;  // "from odd: flows 37, hidden 12, seed 99; options noise 0.31, most_spawned 2"
};

// A case of the component with other sizes, drawn by `text` (the revision), the component's name and `number`: at least
// those of the signature, at most twice what small cases have (timed ones, for `timed`: from half to a quarter more),
// and no more input elements, arithmetic and dispatches of the baseline than those have. One of the sizes, drawn too,
// is any number up to kAnyTail at least: over revisions each leaves every remainder by the width of a vector. A plain
// number, as a seed is, comes from all of its range. Options that variants see, and numbers that inputs hang on, are
// drawn for small cases, between the values that the default and those cases give. A part that an option decides on
// (SizeSpec::part_of) is there where the case has it. Without a fitting case to start from: a draw without sizes.
constexpr std::int64_t kAnyTail = 79;  // four vectors of sixteen, and fifteen more
HeldOutDraw held_out_draw(const Component& component, const std::string& text, int number, bool timed);

// The held-out cells of every component that `filter` matches, of one device. Sizes are drawn where the cell is judged.
class HeldOutCells {
 public:
  HeldOutCells(const std::string& filter, const std::string& device, bool timed);
  const std::vector<Cell>& cells() const { return cells_; }

 private:
  std::deque<Case> cases_;  // what the cells point to
  std::vector<Cell> cells_;
};

}  // namespace twinbench

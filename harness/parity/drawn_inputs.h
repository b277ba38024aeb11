// A cell judged on inputs that are a case: where they are none, the next draw is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/parity/parity.h"

namespace twinbench {

constexpr int kDraws = 8;

// check_cell() with the inputs of `seed`. Where a comparison fails and SharedCase::no_case() says that these inputs are
// no case, the next seed's, seed + kNextSeed: specification 0.5 wants seeds without an undecided item. A row
// "drawn_again" then comes first and says why; each row has the seed that it was judged with. What else fails, fails at
// once, and if no draw is a case, the first one's rows stay.
constexpr std::uint64_t kNextSeed = 1'000'003;
std::vector<CheckResult> judge_cell(const Component& component, Variant variant, const Setting& setting,
                                    std::uint64_t seed, const ParityOptions& options, SharedCases& cases);

// The same with a case whose sizes and seed `text` draws (held_out.h). The first row, "held_out", says which; it is the
// only one, a skip, where no draw is a case: the component refuses it, it takes longer than the options allow, no wrong
// answer can be told from its right one, close decisions leave most of it out, or what failed there failed by no more
// than kNearMiss on inputs that are none. What fails a comparison by less than twice its bound is judged with four more
// seeds that are a case, and fails where it fails with one of them: the first row says so.
std::vector<CheckResult> judge_held_out(const Cell& cell, const std::string& text, const ParityOptions& options,
                                        SharedCases& cases);

}  // namespace twinbench

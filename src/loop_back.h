// Ranks of one thread, behind c10d's interface: sums that are the same bits in every run, for counts and parity.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <vector>

namespace twinbench {

// By rank. The thread asks for one rank after the other, and only then waits: the last rank to ask has the sum made, in
// the order of ranks, for all of them. To wait before is an error, since nobody else could come.
std::vector<c10::intrusive_ptr<c10d::Backend>> loop_back_ranks(int ranks);

}  // namespace twinbench

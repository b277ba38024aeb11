// Host forms of kernels/common/simt_graph.h: the body of a loop is run until a kernel in it says that it is done.
#pragma once

#include <functional>

#include "harness/simt/host_block.h"
#include "kernels/common/simt_graph.h"

namespace twinbench::kernels::simt {

struct HostCondition {
  bool more = true, is_set = false;
};

// Throws what is a finding of the kernel: two different conditions in one turn.
void host_set_condition(HostBlock& block, HostCondition* condition, bool more);

// Throws Error(kBadKernel) for a turn that sets no condition (a card would run the body for ever) and for a loop of
// more than `most_turns`.
void run_host_loop(const std::function<void(HostCondition*)>& body, int most_turns = 100'000);

}  // namespace twinbench::kernels::simt

// The turns of a loop on the host.
#include "harness/simt/host_graph.h"

#include <stdexcept>
#include <string>

#include "src/common/error.h"

namespace twinbench::kernels::simt {

void host_set_condition(HostBlock&, HostCondition* condition, bool more) {
  if (condition->is_set && condition->more != more)
    throw std::runtime_error("two threads set different conditions in one turn of a loop: let one thread decide");
  *condition = {more, true};
}

void run_host_loop(const std::function<void(HostCondition*)>& body, int most_turns) {
  HostCondition condition;
  for (int turn = 0; condition.more; ++turn) {
    if (turn == most_turns)
      throw Error(ErrorKind::kBadKernel, "loop graph", std::to_string(turn) + " turns", "a condition that ends it");
    condition.is_set = false;
    body(&condition);
    if (!condition.is_set)
      throw Error(ErrorKind::kBadKernel, "loop graph", "turn " + std::to_string(turn) + " sets no condition",
                  "let a kernel of the body call set_condition in every turn: a card would go on for ever");
  }
}

}  // namespace twinbench::kernels::simt

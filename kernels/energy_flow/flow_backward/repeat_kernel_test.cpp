// energy_flow.flow_backward's kernels that take flows through a segment of steps once more, on the host executor in
// every thread order: what is kept of flows comes back to them, and admitted children are where their parents were.
#include "kernels/energy_flow/flow_backward/repeat_kernel.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/energy_flow/flow_backward/kernel_testing.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

flow_forward::SlotFields fields(Taped& of, unsigned seed, std::int32_t age) {
  return {.x = of.floats(of.count, seed),
          .y = of.floats(of.count, seed + 1),
          .z = of.floats(of.count, seed + 2),
          .energy = of.floats(of.count, seed + 3),
          .age = of.integers(std::vector<std::int32_t>(size(of.count), age))};
}

TEST(FlowBackwardKernel, WhatASegmentBeginsWithComesBackToItsFlowsAlone) {
  for (const auto& [slots, rows] : kRows)
    for (const auto order : simt::kAllOrders) {
      Taped l(slots, rows);
      StartArguments a{.slots = slots, .total = l.tape.total, .slot = l.tape.slot, .flows = fields(l, 41, 5)};
      const flow_forward::SlotFields before = a.flows, other = fields(l, 51, 9), untouched = fields(l, 51, 9);
      const flow_forward::SlotFields start = fields(l, 61, 0);
      for (std::int32_t slot = 0; slot < slots; ++slot) before.age[slot] = slot;
      a.start = {.x = start.x, .y = start.y, .z = start.z, .energy = start.energy, .age = start.age};
      const simt::Size3 grid{static_cast<unsigned>(kernels::striding_blocks(slots, kernels::kElementThreads)), 1, 1};
      simt::run_clean(KeepStart{}, grid, kernels::kElementThreads, order, a);
      a.flows = other;
      simt::run_clean(TakeStart{}, grid, kernels::kElementThreads, order, a);
      for (std::int32_t slot = 0; slot < slots; ++slot) {
        const flow_forward::SlotFields& due = slot < rows ? before : untouched;  // rows have the first slots
        ASSERT_EQ(other.x[slot], due.x[slot]) << slot;
        ASSERT_EQ(other.y[slot], due.y[slot]) << slot;
        ASSERT_EQ(other.z[slot], due.z[slot]) << slot;
        ASSERT_EQ(other.energy[slot], due.energy[slot]) << slot;
        ASSERT_EQ(other.age[slot], due.age[slot]) << slot;
      }
    }
}

TEST(FlowBackwardKernel, ChildrenAreBornAgainWhereTheirParentsWere) {
  for (const auto& [slots, rows] : kRows)
    for (const auto order : simt::kAllOrders) {
      Taped l(slots, rows);
      const flow_forward::SlotFields flows = fields(l, 41, 5), due = fields(l, 41, 5);
      const BearArguments a{.slots = slots,
                            .tape = l.tape,
                            .results = {.x = l.floats(slots, 46),
                                        .y = l.floats(slots, 47),
                                        .z = l.floats(slots, 48),
                                        .child_energy = l.floats(slots, 49)},
                            .flows = flows};
      simt::run_clean(BearAgain{}, {1, 1, 1}, kernels::kElementThreads, order, a);
      for (std::int32_t row = 0; row < rows; ++row)
        for (std::int32_t i = 0; l.tape.requests[row] > 0 && i < l.tape.children[row]; ++i) {
          const std::int32_t slot = l.tape.first_child[row] + i;
          due.x[slot] = a.results.x[row], due.y[slot] = a.results.y[row], due.z[slot] = a.results.z[row];
          due.energy[slot] = a.results.child_energy[row], due.age[slot] = 0;
        }
      for (std::int32_t slot = 0; slot < slots; ++slot) {
        ASSERT_EQ(flows.x[slot], due.x[slot]) << slot;
        ASSERT_EQ(flows.y[slot], due.y[slot]) << slot;
        ASSERT_EQ(flows.z[slot], due.z[slot]) << slot;
        ASSERT_EQ(flows.energy[slot], due.energy[slot]) << slot;
        ASSERT_EQ(flows.age[slot], due.age[slot]) << slot;
      }
    }
}

}  // namespace
}  // namespace twinbench::energy_flow::flow_backward

// A cell's declared cost against the bytes that its run on the host was counted to move. Parity bounds it by what
// inputs and outputs hold; the run also knows what of them is touched, and what goes to memory and back in between.
#pragma once

#include <string>
#include <vector>

#include "harness/command/kernel_cells.h"
#include "harness/simt/counting/bounds.h"

namespace twinbench {

constexpr double kMostHiddenBytes = 4;  // of a timed cell, counted / declared

// Of all launches, every sector of global memory once a launch, and the operands and results of library products. Where
// blocks were sampled, they stand for the grid.
double moved_bytes(const CountedCell& cell);

// Of timed cells, whose times are held against the cost. "bytes": more is declared than was moved, so that this honest
// run would be called impossible. "roof": so much less that a reason must say what the rest is. The component stands
// for the kernel.
std::vector<kernels::simt::Breach> cost_breaches(const CountedCell& cell);

}  // namespace twinbench

// Absolute bounds on what kernels touch, whatever is pinned; a kernel that breaks one needs a written reason.
#pragma once

#include <string>
#include <vector>

#include "harness/simt/counting/kernel_summary.h"

namespace twinbench::kernels::simt {

constexpr double kMostSectorFactor = 1.1;      // of any line, counted / ideal
constexpr double kMostWavefrontFactor = 1.25;  // of any line
constexpr double kFewestLanes = 24;            // of 32, on a hot line
constexpr double kHotShare = 0.05;             // of the kernel's requests to that memory
constexpr double kMostRepeated = 0.1;          // of the bytes loaded
constexpr int kMostAtomicLanes = 8;            // of one request on one address

// Which bound: these are the words of the file. Arithmetic: a modelled time shorter than what the FLOPs of the cell's
// cost take (harness/command/kernels.cpp); bytes, roof: a cost that declares more bytes than were moved, or far fewer
// (harness/command/kernel_cost.h).
inline constexpr const char* kBoundNames[] = {"sectors", "wavefronts", "lanes", "repeats", "atomics",
                                              "blocks",  "arithmetic", "bytes", "roof"};

struct Breach {
  std::string kernel, bound;  // of arithmetic the component
  std::string at;             // "kernels/.../kernel.h:31"; empty for what the whole kernel breaks
  double figure = 0;          // what was counted, in the bound's own unit
  std::string text;           // the line and the figures
};

// Of lanes and blocks fewer are worse, of everything else more.
inline bool more_is_worse(const std::string& bound) { return bound != "lanes" && bound != "blocks"; }

// `fewest_blocks`: a launch of fewer leaves multiprocessors of the larger card idle.
std::vector<Breach> breaches_of(const KernelSummary& summary, std::uint64_t fewest_blocks);

}  // namespace twinbench::kernels::simt

// Findings in words.
#include "harness/simt/report.h"

namespace twinbench::kernels::simt {

const char* to_string(FindingKind kind) {
  switch (kind) {
    case FindingKind::kRace: return "race";
    case FindingKind::kUninitialisedRead: return "uninitialised shared read";
    case FindingKind::kSharedOutOfBounds: return "shared index out of bounds";
    case FindingKind::kSharedTooLarge: return "too much shared memory";
    case FindingKind::kDivergentBarrier: return "divergent barrier";
    case FindingKind::kWarpMask: return "wrong warp mask";
    case FindingKind::kShuffleSource: return "shuffle from a lane outside the mask";
    case FindingKind::kOutOfBounds: return "out of bounds";
    case FindingKind::kException: return "exception";
    case FindingKind::kAsyncCopy: return "asynchronous copy";
    case FindingKind::kBlockRace: return "race between blocks";
    case FindingKind::kTeam: return "blocks that work together";
    case FindingKind::kMisaligned: return "misaligned access";
  }
  return "unknown";
}

std::string Finding::line() const {
  return std::string(to_string(kind)) + " in " + kernel + ", block (" + std::to_string(block.x) + ", " +
         std::to_string(block.y) + ", " + std::to_string(block.z) + "): " + text;
}

bool Report::has(FindingKind kind) const {
  for (const Finding& finding : findings) {
    if (finding.kind == kind) return true;
  }
  return false;
}

std::string Report::text() const {
  std::string text;
  for (const Finding& finding : findings) text += finding.line() + "\n";
  if (findings.empty()) text = "no findings\n";
  return text + std::to_string(blocks) + " blocks, " + std::to_string(threads) + " threads, " +
         std::to_string(barriers) + " barriers, " + std::to_string(warp_operations) + " warp operations\n";
}

}  // namespace twinbench::kernels::simt

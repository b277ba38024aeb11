// What a checked host run of a kernel found: one finding per kind and place, in words, and the counts of what ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

enum class FindingKind {
  kRace,               // two threads touched a shared element without an ordering barrier, at least one writing
  kUninitialisedRead,  // shared memory read before any thread of the block wrote it
  kSharedOutOfBounds,  // index outside a shared array
  kSharedTooLarge,     // more than kMaxSharedBytes in one block
  kDivergentBarrier,   // some threads of a block wait at a barrier that others never reach, or at different barriers
  kWarpMask,           // a shuffle, ballot or warp barrier whose mask does not name exactly the threads that take part
  kShuffleSource,      // a shuffle reads a lane that its mask does not name
  kOutOfBounds,        // access outside a GuardedBuffer
  kException,          // the kernel threw
  kBlockRace,          // two blocks touched global memory, at least one writing, not both atomically; where counted
  kAsyncCopy,          // an asynchronous copy that nobody waited for, or whose destination was written meanwhile
  kTeam,               // a cluster's or grid's barrier, or another block's shared memory, used as no card allows
  kMisaligned,         // an access at an address that is no multiple of its size; where hooks are compiled in
};

const char* to_string(FindingKind kind);

struct Finding {
  FindingKind kind;
  std::string kernel;
  Index3 block;
  int thread;           // rank in the block of the thread at fault
  int other_thread;     // the second thread of a race, the missing one of a barrier or mask; -1 if none
  std::int64_t offset;  // element of the shared array, or byte from the start of the guarded buffer; -1 if none
  std::string text;     // the whole story, for people

  std::string line() const;
};

struct Report {
  std::vector<Finding> findings;
  std::uint64_t blocks = 0, threads = 0, barriers = 0, warp_operations = 0, switches = 0;
  int static_shared_bytes = 0;  // of one block

  bool ok() const { return findings.empty(); }
  bool has(FindingKind kind) const;
  std::string text() const;  // one line a finding; "no findings" and the counts if there are none
};

}  // namespace twinbench::kernels::simt

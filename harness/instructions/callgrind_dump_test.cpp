// Costs of a dump: a function's own lines, not what its callees took, and not the allocator's.
#include "harness/instructions/callgrind_dump.h"

#include <gtest/gtest.h>

#include <string>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr char kHead[] = "version: 1\ncmd: a 7\nevents: Ir\nsummary: 999\n\nob=(1) /lib/a.so\nfl=(1) a.cpp\n";

TEST(CallgrindDump, SumsOwnCostsOnly) {
  EXPECT_EQ(
      instructions_in(std::string(kHead) + "fn=(3) work\n10 5\n+2 7\n* 1\ncfn=(4) inner\ncalls=2 30\n-3 100\n\nfn=(4)\n0 50\n"
                                   "totals: 163\n"),
      5 + 7 + 1 + 50);
}

TEST(CallgrindDump, LeavesTheAllocatorOutByNameAndByNumber) {
  EXPECT_EQ(instructions_in(std::string(kHead) + "fn=(3) work\n10 5\ncfn=(8) _int_malloc\ncalls=1 1\n11 40\n\nfn=(8)\n0 40\n\n"
                                         "fn=(9) free\n1 3\n\nfn=(10) my_malloc\n2 6\n"),
            5 + 6);
}

TEST(CallgrindDump, RefusesADumpWithoutCosts) {
  EXPECT_THROW(instructions_in(kHead), Error);
  EXPECT_THROW(instructions_in(""), Error);
}

}  // namespace
}  // namespace twinbench

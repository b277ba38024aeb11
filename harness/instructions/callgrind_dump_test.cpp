// Costs of a dump: a function's own lines, not what its callees took, not the allocator's, and not what waiting takes.
#include "harness/instructions/callgrind_dump.h"

#include <gtest/gtest.h>

#include <string>

#include "src/common/error.h"

namespace twinbench {
namespace {

DumpedInstructions counted(const std::string& text) { return instructions_in(text, "/bin/program"); }

constexpr char kHead[] = "version: 1\ncmd: a 7\nevents: Ir\nsummary: 999\n\nob=(1) /lib/a.so\nfl=(1) a.cpp\n";

TEST(CallgrindDump, SumsOwnCostsOnly) {
  EXPECT_EQ(counted(std::string(kHead) + "fn=(3) work\n10 5\n+2 7\n* 1\ncfn=(4) inner\ncalls=2 30\n-3 100\n\nfn=(4)\n"
                                         "0 50\ntotals: 163\n")
                .total,
            5 + 7 + 1 + 50);
}

TEST(CallgrindDump, LeavesTheAllocatorOutByNameAndByNumber) {
  EXPECT_EQ(counted(std::string(kHead) + "fn=(3) work\n10 5\ncfn=(8) _int_malloc\ncalls=1 1\n11 40\n\nfn=(8)\n0 40\n\n"
                                         "fn=(9) free\n1 3\n\nfn=(10) my_malloc\n2 6\n")
                .total,
            5 + 6);
}

// Debian's updates of one C library name its clones differently.
TEST(CallgrindDump, LeavesOutWhateverACompilerOrAVersionAddsToAName) {
  EXPECT_EQ(counted(std::string(kHead) + "fn=(3) unlink_chunk.constprop.0\n10 5\n\nfn=(4) unlink_chunk.isra.0\n10 6\n\n"
                                         "fn=(5) pthread_cond_wait@@GLIBC_2.3.2\n1 7\n\nfn=(6) unlink_chunks\n2 8\n")
                .total,
            8);
}

TEST(CallgrindDump, WaitingIsNobodysOwn) {
  const auto sum = counted(
      "ob=(2) /bin/program\nfn=(6) run()\n20 7\ncob=(8) /lib/libc.so.6\n"
      "cfn=(9) pthread_cond_wait@@GLIBC_2.3.2\ncalls=1 1\n24 60\n");
  EXPECT_EQ(sum.own, 7);
}

TEST(CallgrindDump, TheProgramsOwnAreItsFunctionsAndTheCLibrarysThatItCalls) {
  const auto sum = counted(std::string(kHead) +
                           "fn=(3) at::mul\n10 5\ncob=(4) /lib/libm.so.6\ncfn=(5) sinf\ncalls=1 1\n11 300\n\n"
                           "ob=(2) /bin/program\nfn=(6) Baseline::run()\n20 7\n"
                           "cob=(1)\ncfn=(3)\ncalls=1 1\n21 305\n"                       // an operator
                           "cfn=(7) Baseline::part()\ncalls=1 1\n22 30\n"                // its own lines follow
                           "cob=(4)\ncfn=(5)\ncalls=1 1\n23 200\n"                       // a sine of its own
                           "cob=(8) /lib/libc.so.6\ncfn=(9) malloc\ncalls=1 1\n24 60\n"  // the heap's
                           "fn=(7)\n30 30\n\n"
                           "ob=(4)\nfn=(5)\n40 500\n\nob=(8)\nfn=(9)\n50 60\n");
  EXPECT_EQ(sum.own, 7 + 200 + 30);
  EXPECT_EQ(sum.total, 5 + 7 + 30 + 500);
}

TEST(CallgrindDump, RefusesADumpWithoutCosts) {
  EXPECT_THROW(counted(kHead), Error);
  EXPECT_THROW(counted(""), Error);
}

}  // namespace
}  // namespace twinbench

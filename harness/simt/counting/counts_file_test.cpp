// Pins and bounds: a changed count, a vanished cell, a broken bound and a needless reason are told by name.
#include "harness/simt/counting/counts_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "src/common/error.h"

namespace twinbench::kernels::simt {
namespace {

KernelSummary summary(std::uint64_t sectors) {
  KernelSummary result;
  result.kernel = "demo::Copy";
  result.launches = 1;
  result.grid_blocks = result.blocks = result.fewest_blocks = 200;
  const AccessTotals totals{.requests = 100, .lanes = 3200, .units = sectors, .ideal = 400, .unique_bytes = 12800};
  result.loads = totals;
  result.lines = {{"kernels/demo/copy/kernel.h:31", "", false, Access::kRead, 4, totals}};
  return result;
}

nlohmann::json cell(std::uint64_t sectors) { return {{"demo::Copy", to_json(summary(sectors), 3)}}; }

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text = "") {
    if (!text.empty()) std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "kernel_counts_test.json";
};

std::string refused(const std::string& text) {
  const TemporaryFile file(text);
  try {
    CountsFile::load(file.path());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
    return error.what();
  }
  return "";
}

TEST(CountsFile, ComparesExactlyButForLineNumbers) {
  CountsFile file;
  file.set("a", cell(440));
  EXPECT_TRUE(file.compare("a", cell(440)).empty());
  nlohmann::json moved = cell(440);
  moved["demo::Copy"]["worst"][0]["at"] = "kernels/demo/copy/kernel.h:35";
  EXPECT_TRUE(file.compare("a", moved).empty());
  moved["demo::Copy"]["worst"][0]["at"] = "kernels/demo/copy/math.h:31";
  EXPECT_FALSE(file.compare("a", moved).empty());
  const auto changed = file.compare("a", cell(441));
  ASSERT_FALSE(changed.empty());
  EXPECT_EQ(changed[0], "a demo::Copy loads sectors: 440 -> 441");
  EXPECT_FALSE(file.compare("a", cell(439)).empty());  // better is no pass either
  EXPECT_EQ(file.compare("b", cell(440)).size(), 1u);
}

TEST(CountsFile, ComesBackAsItWasSaved) {
  const TemporaryFile given(
      R"({"reasons": [{"kernel": "k", "bound": "sectors", "reason": "rows of 65"}], "cells": {}})");
  CountsFile file = CountsFile::load(given.path());
  file.set("a", cell(440));
  file.set("b", cell(450));
  file.save(given.path());
  const CountsFile again = CountsFile::load(given.path());
  EXPECT_EQ(again.cells(), file.cells());
  EXPECT_TRUE(again.judge({{"k", "sectors", "text"}}, true).empty());
}

TEST(CountsFile, RefusesWhatItDoesNotUnderstand) {
  EXPECT_NE(refused("{"), "");
  EXPECT_NE(refused("[]"), "");
  EXPECT_NE(refused(R"({"cells": {}, "reasons": [{"kernel": "k", "bound": "sector", "reason": "r"}]})").find("sector"),
            std::string::npos);
  EXPECT_NE(refused(R"({"cells": {}, "reasons": [{"kernel": "k", "bound": "sectors", "reason": ""}]})").find("reason"),
            std::string::npos);
  const std::string row = R"({"kernel": "k", "bound": "sectors", "reason": "r"})";
  EXPECT_NE(refused(R"({"cells": {}, "reasons": [)" + row + "," + row + "]}").find("one reason each"),
            std::string::npos);
}

TEST(CountsFile, ACellThatVanishesIsTold) {
  CountsFile file;
  file.set("a", cell(440));
  file.set("b", cell(440));
  const auto gone = file.vanished({{"a", cell(440)}});
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].rfind("b is pinned", 0), 0u);
}

TEST(CountsFile, ABoundNeedsAReasonAndAReasonABound) {
  const TemporaryFile given(
      R"({"reasons": [{"kernel": "demo::Copy", "bound": "sectors", "reason": "rows of 65"}], "cells": {}})");
  const CountsFile file = CountsFile::load(given.path());
  const auto breaches = breaches_of(summary(500), 170);
  ASSERT_EQ(breaches.size(), 1u);
  EXPECT_TRUE(file.judge(breaches, true).empty());
  EXPECT_EQ(CountsFile().judge(breaches, true).size(), 1u);
  EXPECT_EQ(file.judge({}, true).size(), 1u);
  EXPECT_TRUE(file.judge({}, false).empty());
}

TEST(Bounds, EachIsBrokenByItsOwnBug) {
  const auto broken = [](const KernelSummary& s) {
    std::string names;
    for (const Breach& breach : breaches_of(s, 170)) names += breach.bound + " ";
    return names;
  };
  EXPECT_EQ(broken(summary(440)), "");
  EXPECT_EQ(broken(summary(441)), "sectors ");
  KernelSummary one = summary(400);
  one.lines[0].totals.lanes = 23 * 100;
  EXPECT_EQ(broken(one), "lanes ");
  one = summary(400);
  one.fewest_blocks = 169;
  EXPECT_EQ(broken(one), "blocks ");
  one = summary(400);
  one.loads.repeated_bytes = 1281;
  EXPECT_EQ(broken(one), "repeats ");
  one = summary(400);
  one.lines[0].access = Access::kAtomic;
  one.lines[0].totals.most_on_one_address = 9;
  EXPECT_EQ(broken(one), "atomics ");
  one = summary(400);
  one.lines[0].shared = true;
  one.lines[0].totals.units = 501;
  one.shared = one.lines[0].totals;
  EXPECT_EQ(broken(one), "wavefronts ");
}

}  // namespace
}  // namespace twinbench::kernels::simt

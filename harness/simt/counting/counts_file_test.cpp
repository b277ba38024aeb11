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

// A file of one reason, for line `line` of `file` where it has one.
std::string reasons(const std::string& bound, double limit, const std::string& file = "", const std::string& line = "",
                    const std::string& reason = "Rows of 65 floats start anywhere in a sector.") {
  nlohmann::json row = {{"kernel", "demo::Copy"}, {"bound", bound}, {"limit", limit}, {"reason", reason}};
  if (!file.empty()) row["file"] = file;
  if (!line.empty()) row["line"] = line;
  return nlohmann::json({{"reasons", {row}}, {"cells", nlohmann::json::object()}}).dump();
}

TEST(CountsFile, ComesBackAsItWasSaved) {
  const TemporaryFile given(reasons("blocks", 16));
  CountsFile file = CountsFile::load(given.path());
  file.set("a", cell(440));
  file.set("b", cell(450));
  file.save(given.path());
  const CountsFile again = CountsFile::load(given.path());
  EXPECT_EQ(again.cells(), file.cells());
  EXPECT_TRUE(again.judge({{"demo::Copy", "blocks", "", 16, "text"}}, true).empty());
}

TEST(CountsFile, RefusesWhatItDoesNotUnderstand) {
  EXPECT_NE(refused("{"), "");
  EXPECT_NE(refused("[]"), "");
  EXPECT_NE(refused(reasons("sector", 2, "f", "l")).find("sector"), std::string::npos);
  EXPECT_NE(refused(reasons("sectors", 2)).find("the line's text"), std::string::npos);
  EXPECT_NE(refused(reasons("blocks", 2, "f", "l")).find("whole kernel"), std::string::npos);
  EXPECT_NE(refused(reasons("blocks", 2, "", "", "Not so nice.")).find("sentence"), std::string::npos);
  nlohmann::json root = nlohmann::json::parse(reasons("blocks", 2));
  root["reasons"].push_back(root["reasons"][0]);
  EXPECT_NE(refused(root.dump()).find("one reason each"), std::string::npos);
  root["reasons"][1].erase("limit");
  EXPECT_NE(refused(root.dump()).find("limit"), std::string::npos);
}

TEST(CountsFile, ACellThatVanishesIsTold) {
  CountsFile file;
  file.set("a", cell(440));
  file.set("b", cell(440));
  const auto gone = file.vanished({{"a", cell(440)}});
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].rfind("b is pinned", 0), 0u);
}

// Reasons hold for the line of the source that they quote, wherever it has moved to, and up to their limit.
TEST(CountsFile, ABoundNeedsAReasonAndAReasonABound) {
  const std::string source = testing::TempDir() + "counts_file_test_kernel.h";
  std::ofstream(source) << "// A kernel.\nto[i] = from[i];\nsums[i] = total;\n";
  KernelSummary copy = summary(500);
  copy.lines[0].at = source + ":3";
  const auto breaches = breaches_of(copy, 170);
  ASSERT_EQ(breaches.size(), 1u);
  const auto judged = [&](const std::string& text, bool complete = true) {
    const TemporaryFile given(text);
    return CountsFile::load(given.path()).judge(breaches, complete);
  };
  EXPECT_EQ(CountsFile().judge(breaches, true).size(), 1u);
  EXPECT_TRUE(judged(reasons("sectors", 1.25, source, "sums[i] =")).empty());
  EXPECT_EQ(judged(reasons("sectors", 1.25, source, "to[i] =")).size(), 2u);  // another line: told, and not needed
  EXPECT_EQ(judged(reasons("sectors", 1.25, source, "to[i] ="), false).size(), 1u);
  EXPECT_EQ(judged(reasons("sectors", 1.25, "elsewhere.h", "sums[i] =")).size(), 2u);
  const auto worse = judged(reasons("sectors", 1.2, source, "sums[i] ="));
  ASSERT_EQ(worse.size(), 1u);
  EXPECT_NE(worse[0].find("its reason allows 1.20"), std::string::npos);
  const auto loose = judged(reasons("sectors", 2, source, "sums[i] ="));
  ASSERT_EQ(loose.size(), 1u);
  EXPECT_NE(loose[0].find("allows 2.00, counted are 1.25"), std::string::npos);
  EXPECT_TRUE(judged(reasons("sectors", 2, source, "sums[i] ="), false).empty());
  std::remove(source.c_str());
}

TEST(CountsFile, OfBlocksFewerAreWorse) {
  const TemporaryFile given(reasons("blocks", 16));
  const CountsFile file = CountsFile::load(given.path());
  const auto of = [](double blocks) { return std::vector<Breach>{{"demo::Copy", "blocks", "", blocks, "text"}}; };
  EXPECT_TRUE(file.judge(of(16), true).empty());
  EXPECT_TRUE(file.judge({of(16)[0], of(64)[0]}, true).empty());
  EXPECT_EQ(file.judge(of(15), true).size(), 1u);
  EXPECT_EQ(file.judge(of(17), true).size(), 1u);
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

// Executions from counts, for hand-written listings whose true numbers are known (testing/listings.json; their pieces
// are ci/tests/test_kernel_pieces.py's to check), with faults planted: a lost anchor, swapped lines.
#include "harness/model/executions.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/model/kernel_figures.h"

namespace twinbench::model {
namespace {

using nlohmann::json;

struct Listing {
  KernelFigures figures;
  std::vector<CountedPlace> counted;
  std::vector<double> truth;  // executions by piece
};

Listing listing_of(const json& row) {
  const std::string code = testing::TempDir() + "listing_code.json";
  const std::string budgets = testing::TempDir() + "listing_budgets.json";
  const json figures = {{"instructions", 1}, {"loads_in_flight", 1}, {"pieces", row["pieces"]}};
  std::ofstream(code) << json{{"kernels", {{"demo", {{"places", row["places"]}, {"sm_90", figures}}}}}};
  std::ofstream(budgets)
      << R"({"kernels": {"demo": {"sm_90": {"registers": 1, "spill_store_bytes": 0, "warps_per_sm": 64}}}})";
  Listing listing;
  listing.figures = *CompiledKernels::load(budgets, code).find("demo", "sm_90");
  for (const json& one : row["counted"]) listing.counted.push_back({one[0], {one[1], one[2], "", 0}, one[3]});
  listing.truth = row["executions"].get<std::vector<double>>();
  return listing;
}

Listing listing_named(const std::string& name) {
  for (const json& row : json::parse(std::ifstream("harness/model/testing/listings.json")))
    if (row["name"] == name) return listing_of(row);
  throw std::out_of_range(name);
}

std::vector<double> estimate(const Listing& listing) {
  return executions_of(listing.figures.pieces, join(listing.figures.places, listing.counted).words);
}

double instructions(const Listing& listing, const std::vector<double>& executions) {
  double sum = 0;
  for (std::size_t i = 0; i < executions.size(); ++i) sum += executions[i] * listing.figures.pieces[i].instructions;
  return sum;
}

double error_of(const Listing& listing) {
  return instructions(listing, estimate(listing)) / instructions(listing, listing.truth) - 1;
}

TEST(Executions, AreTheTrueOnesWhereEveryPieceHasAPlaceOfItsOwn) {
  for (const char* name : {"rolled_loop", "nested_loops", "rare_branch"}) {
    const Listing listing = listing_named(name);
    const std::vector<double> found = estimate(listing);
    ASSERT_EQ(found.size(), listing.truth.size()) << name;
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], listing.truth[i], 1e-9) << name << " " << i;
  }
}

// With an equal share of all instructions for each access it would be three eighths of them.
TEST(Executions, ARolledLoopsProductsAreThoseOfItsRounds) {
  const Listing listing = listing_named("rolled_loop");
  const std::vector<double> found = estimate(listing);
  double fma = 0;
  for (std::size_t i = 0; i < found.size(); ++i) fma += found[i] * listing.figures.pieces[i].fma;
  EXPECT_NEAR(fma, 10 * 16 * 8, 1e-6);
}

TEST(Executions, CopiesOfALoopShareItsRounds) {
  const Listing listing = listing_named("unrolled_with_remainder");
  const std::vector<double> found = estimate(listing);
  EXPECT_NEAR(4 * found[1] + found[2], 18, 1e-6);  // every round is in one of them
  EXPECT_LT(std::abs(error_of(listing)), 0.05);
}

TEST(Executions, OtherCountsTellCallersOfAHelperApart) {
  const Listing listing = listing_named("inlined_helper");
  const std::vector<double> found = estimate(listing);
  EXPECT_NEAR(found[0], 1, 0.05);
  EXPECT_NEAR(found[1], 100, 1);
}

TEST(Executions, ALostAnchorShows) {
  Listing listing = listing_named("rolled_loop");
  listing.figures.pieces[1].at.clear();
  EXPECT_LT(error_of(listing), -0.8);  // one round instead of 16
}

TEST(Executions, SwappedLinesShow) {
  Listing listing = listing_named("nested_loops");
  std::swap(listing.counted[1].words, listing.counted[2].words);
  EXPECT_GT(std::abs(error_of(listing)), 0.15);
}

TEST(KernelPlaces, AMovedLineIsFoundByItsText) {
  const std::string file = testing::TempDir() + "moved.h";
  std::ofstream(file) << "// new\n// new\n  a = b;\n  c = d;\n  a = b;\n";
  EXPECT_EQ(present_line(file, 1, "a = b;"), 3);
  EXPECT_EQ(present_line(file, 6, "a = b;"), 5);
  EXPECT_EQ(present_line(file, 2, "c = d"), 4);
  EXPECT_EQ(present_line(file, 7, "gone"), 7);
  EXPECT_EQ(present_line(testing::TempDir() + "none.h", 7, "a"), 7);
}

CountedPlace load_at(const char* file, int line, double words) { return {"load", {file, line, "", 0}, words}; }

TEST(KernelPlaces, ALineOfALongStatementIsTheNearest) {
  const std::vector<KernelPlace> places = {{"load", {"kernels/a.h", 10, "", 0}}, {"load", {"kernels/a.h", 20, "", 0}}};
  const JoinedPlaces joined = join(places, {load_at("kernels/a.h", 11, 5), load_at("kernels/a.h", 20, 7)});
  EXPECT_EQ(joined.known, 12);
  ASSERT_GE(joined.words.group_of[0], 0);
  EXPECT_EQ(joined.words.words[static_cast<std::size_t>(joined.words.group_of[0])], 5);
}

// Two calls of a helper whose card's form stands on line 5.
TEST(KernelPlaces, AHelperIsKnownByItsCallByItsLineAndByItsFile) {
  const std::vector<KernelPlace> places = {{"load", {"kernels/a.h", 10, "kernels/common/h.h", 5}},
                                           {"load", {"kernels/a.h", 20, "kernels/common/h.h", 5}}};
  const JoinedPlaces call = join(places, {{"load", {"kernels/a.h", 10, "kernels/common/h.h", 9}, 7}});
  EXPECT_EQ(call.known, 7);
  ASSERT_GE(call.words.group_of[0], 0);
  EXPECT_EQ(call.words.words[static_cast<std::size_t>(call.words.group_of[0])], 7);
  EXPECT_NE(call.words.group_of[0], call.words.group_of[1]);
  for (const int line : {5, 9}) {
    const JoinedPlaces helper = join(places, {load_at("kernels/common/h.h", line, 7)});
    EXPECT_EQ(helper.known, 7) << line;
    EXPECT_GE(helper.words.group_of[0], 0) << line;
    EXPECT_EQ(helper.words.group_of[0], helper.words.group_of[1]) << line;
  }
  EXPECT_EQ(join(places, {{"load", {"kernels/b.h", 3, "kernels/common/h.h", 5}, 7}}).known, 7);
}

TEST(KernelPlaces, APlaceWithoutAnAccessWasNotReachedUnlessOneIsLeftOver) {
  const std::vector<KernelPlace> places = {{"load", {"kernels/a.h", 10, "", 0}}, {"load", {"kernels/a.h", 20, "", 0}}};
  const JoinedPlaces all = join(places, {load_at("kernels/a.h", 10, 5)});
  ASSERT_GE(all.words.group_of[1], 0);
  EXPECT_EQ(all.words.words[static_cast<std::size_t>(all.words.group_of[1])], 0);
  const JoinedPlaces one_left = join(places, {load_at("kernels/a.h", 10, 5), load_at("kernels/a.h", 30, 7)});
  EXPECT_EQ(one_left.words.group_of[1], -1);
  EXPECT_EQ(one_left.known, 5);
  EXPECT_EQ(one_left.all, 12);
}

}  // namespace
}  // namespace twinbench::model

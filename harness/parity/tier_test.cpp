// Samples are complete over revisions, one large twin a component in each; nothing small is ever left out; order by
// value.
#include "harness/parity/tier.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "src/common/error.h"

namespace twinbench {
namespace {

std::vector<Cell> cpu_cells() {
  std::vector<Cell> cells;
  for (const auto& cell : all_cells())
    if (cell.device == c10::DeviceType::CPU) cells.push_back(cell);
  return cells;
}

std::string twin_of(const Cell& cell) {
  return cell.component->spec.id() + "/" + to_string(cell.dtype) + "/" + cell.input_case->name;
}

TEST(Tier, FullLeavesNothingOut) {
  for (const auto& cell : all_cells()) EXPECT_EQ(not_sampled(cell, Tier::kFull, "abc"), "");
}

TEST(Tier, QuickTakesEverySmallCellAndOneLargeTwinOfEachComponent) {
  std::map<std::string, std::set<std::string>> taken;
  std::set<std::string> with_large;
  for (const auto& cell : cpu_cells()) {
    const std::string why = not_sampled(cell, Tier::kQuick, "abc");
    if (!is_large(*cell.input_case)) {
      EXPECT_EQ(why, "") << cell.name();
      continue;
    }
    if (why.rfind("too long", 0) == 0) continue;  // the full tier's
    with_large.insert(cell.component->spec.id());
    if (why.empty()) taken[cell.component->spec.id()].insert(twin_of(cell));
    EXPECT_TRUE(why.empty() || why.find("--tier full") != std::string::npos) << "it says what to do";
  }
  for (const auto& id : with_large) EXPECT_EQ(taken[id].size(), 1u) << id;
}

TEST(Tier, ASampleCanBeRepeatedAndRevisionsTakeTurns) {
  std::set<std::string> over_revisions, large;
  for (const auto& cell : cpu_cells()) {
    if (!is_large(*cell.input_case)) continue;
    if (not_sampled(cell, Tier::kQuick, "r1").find("too long") == 0) continue;
    large.insert(twin_of(cell));
    EXPECT_EQ(not_sampled(cell, Tier::kQuick, "r1"), not_sampled(cell, Tier::kQuick, "r1"));
    for (int revision = 0; revision < 200; ++revision)
      if (not_sampled(cell, Tier::kQuick, "r" + std::to_string(revision)).empty()) over_revisions.insert(twin_of(cell));
  }
  EXPECT_EQ(over_revisions, large) << "every large case has its turn";
}

TEST(Tier, QuickHasNoTimeForTensOfThousandsOfFlows) {
  const auto why = [](const std::string& name) { return not_sampled(find_cell(name), Tier::kQuick, "abc"); };
  for (const char* variant : {"baseline", "optimized"})
    EXPECT_EQ(why(std::string("energy_flow.simple_neuron/") + variant + "/cpu/fp32/flows_40000").find("too long"), 0u);
  EXPECT_NE(why("energy_flow.simple_neuron/baseline/cpu/fp32/stress").find("too long"), 0u);
  EXPECT_EQ(not_sampled(find_cell("energy_flow.simple_neuron/baseline/cpu/fp32/flows_40000"), Tier::kFull, ""), "");
}

TEST(Tier, TheMostValuableComeFirstAndCasesStayTogether) {
  const auto cells = most_valuable_first(cpu_cells(), "abc");
  ASSERT_EQ(cells.size(), cpu_cells().size());
  std::set<std::string> seen, done;
  std::string last;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    EXPECT_TRUE(seen.insert(cells[i].name()).second);
    EXPECT_LE(value_class(cells[i > 0 ? i - 1 : 0]), value_class(cells[i]));
    const std::string twin = twin_of(cells[i]);
    EXPECT_TRUE(twin == last || done.insert(twin).second) << twin << " is torn apart";
    last = twin;
  }
  EXPECT_TRUE(cells.front().component->has_kernel);
  EXPECT_FALSE(is_large(*cells.front().input_case));
}

TEST(Tier, EveryCaseOfAComponentComesFirstInSomeRevision) {
  std::map<std::string, std::set<std::string>> small, first;
  const auto cells = cpu_cells();
  for (const auto& cell : cells)
    if (!is_large(*cell.input_case)) small[cell.component->spec.id()].insert(case_name(cell));
  for (int revision = 0; revision < 400; ++revision) {
    std::set<std::string> begun;
    for (const auto& cell : most_valuable_first(cells, "r" + std::to_string(revision)))
      if (begun.insert(cell.component->spec.id()).second) first[cell.component->spec.id()].insert(case_name(cell));
  }
  EXPECT_EQ(first, small) << "a budget that ends after the first would never judge the others";
}

TEST(Tier, KnowsItsNames) {
  EXPECT_EQ(tier_named("quick"), Tier::kQuick);
  EXPECT_EQ(tier_named("full"), Tier::kFull);
  EXPECT_THROW(tier_named("quik"), Error);
}

}  // namespace
}  // namespace twinbench

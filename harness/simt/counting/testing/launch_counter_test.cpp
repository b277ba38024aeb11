// Planted inefficiencies and bugs are seen where they are, and what is counted depends neither on
// the order in which threads run nor on how the compiler optimises the host's code.
#include "harness/simt/counting/launch_counter.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "harness/simt/counting/bounds.h"
#include "harness/simt/counting/source_place.h"
#include "harness/simt/counting/testing/counted_run.h"

namespace twinbench::kernels::simt {
namespace {

// Site totals of one kind.
SiteCounts total(const LaunchCounts& counts, bool shared, Access access) {
  SiteCounts sum{.shared = shared, .access = access};
  for (const SiteCounts& site : counts.sites) {
    if (site.shared != shared || site.access != access) continue;
    sum.requests += site.requests;
    sum.lanes += site.lanes;
    sum.units += site.units;
    sum.ideal += site.ideal;
    sum.unique_bytes += site.unique_bytes;
    sum.repeated_bytes += site.repeated_bytes;
    sum.most_on_one_address = std::max(sum.most_on_one_address, site.most_on_one_address);
  }
  return sum;
}

CountedRun run(const std::string& kernel) { return level_2::run(kernel, Order::kForward); }

TEST(LaunchCounter, SeesAnUncoalescedWalk) {
  const SiteCounts bad = total(run("uncoalesced walk").counts, false, Access::kRead);
  EXPECT_EQ(bad.requests, 2u * 8 * 32);
  EXPECT_EQ(bad.units, 32 * bad.requests);
  EXPECT_EQ(bad.ideal, 4 * bad.requests);
  EXPECT_EQ(bad.repeated_bytes, 0u);  // the same sectors again, but other bytes of them
  const SiteCounts good = total(run("coalesced walk").counts, false, Access::kRead);
  EXPECT_EQ(good.requests, bad.requests);
  EXPECT_EQ(good.units, good.ideal);
}

TEST(LaunchCounter, SeesABankConflict) {
  const SiteCounts bad = total(run("bank conflict").counts, true, Access::kRead);
  EXPECT_EQ(bad.requests, 32u);
  EXPECT_EQ(bad.units, 32u * 32);
  EXPECT_EQ(bad.ideal, 32u);
  const SiteCounts good = total(run("padded column").counts, true, Access::kRead);
  EXPECT_EQ(good.units, 32u);
}

TEST(LaunchCounter, NamesTheLine) {
  const LaunchCounts counts = run("bank conflict").counts;
  std::map<std::string, std::uint64_t> wavefronts;
  for (const SiteCounts& site : counts.sites)
    if (site.shared) wavefronts[place_of(site.site).text()] += site.units;
  ASSERT_EQ(wavefronts.size(), 2u);
  const auto& [place, most] = *std::max_element(wavefronts.begin(), wavefronts.end(),
                                                [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_EQ(most, 1024u);
  EXPECT_EQ(place.rfind("harness/simt/counting/testing/planted_kernels.h:", 0), 0u) << place;
}

TEST(LaunchCounter, SeesAMisalignedVectorAccess) {
  const CountedRun bad = run("misaligned vector");
  ASSERT_TRUE(bad.report.has(FindingKind::kMisaligned)) << bad.report.text();
  EXPECT_NE(bad.report.text().find("8 bytes at an address that is 4 past"), std::string::npos) << bad.report.text();
  EXPECT_NE(bad.report.text().find("planted_kernels.h:"), std::string::npos) << bad.report.text();
  const CountedRun good = run("aligned vector");
  EXPECT_TRUE(good.report.ok()) << good.report.text();
  EXPECT_EQ(total(good.counts, false, Access::kRead).requests, 1u);
}

TEST(LaunchCounter, SeesRacesBetweenBlocks) {
  for (const Order order : kAllOrders) {
    for (const char* racing : {"missing atomic", "reads neighbour"}) {
      const Report report = level_2::run(racing, order).report;
      EXPECT_TRUE(report.has(FindingKind::kBlockRace)) << racing << ", " << to_string(order) << ": " << report.text();
    }
    const Report report = level_2::run("with atomic", order).report;
    EXPECT_TRUE(report.ok()) << report.text();
  }
}

TEST(LaunchCounter, KnowsWhatOrdersBlocks) {
  for (const Order order : kAllOrders) {
    for (const char* right : {"last block", "grid barrier", "cluster"}) {
      const Report report = level_2::run(right, order).report;
      EXPECT_TRUE(report.ok()) << right << ", " << to_string(order) << ": " << report.text();
    }
    for (const char* wrong : {"last block without fence", "last block without barrier", "no grid barrier"}) {
      const Report report = level_2::run(wrong, order).report;
      EXPECT_TRUE(report.has(FindingKind::kBlockRace)) << wrong << ", " << to_string(order) << ": " << report.text();
    }
  }
}

TEST(LaunchCounter, SeesADividedWarp) {
  const SiteCounts bad = total(run("divided warp").counts, false, Access::kRead);
  EXPECT_EQ(bad.lanes, 16 * bad.requests);
  const SiteCounts good = total(run("undivided warp").counts, false, Access::kRead);
  EXPECT_EQ(good.lanes, 32 * good.requests);
  EXPECT_EQ(2 * good.requests, bad.requests);
}

TEST(LaunchCounter, SeesARedundantRead) {
  EXPECT_EQ(total(run("redundant read").counts, false, Access::kRead).repeated_bytes, 256u * 4);
  EXPECT_EQ(total(run("single read").counts, false, Access::kRead).repeated_bytes, 0u);
}

TEST(LaunchCounter, SeesAnAtomicHotSpot) {
  const SiteCounts bad = total(run("atomic hot spot").counts, false, Access::kAtomic);
  EXPECT_EQ(bad.lanes, 1024u);
  EXPECT_EQ(bad.most_on_one_address, 32);
  const SiteCounts good = total(run("atomic once a warp").counts, false, Access::kAtomic);
  EXPECT_EQ(good.lanes, 32u);
  EXPECT_EQ(good.most_on_one_address, 1);
}

TEST(LaunchCounter, CountsTheLaunch) {
  const LaunchCounts counts = run("softmax").counts;
  EXPECT_EQ(counts.blocks, 5u);
  EXPECT_EQ(counts.threads, 5u * 256);
  EXPECT_EQ(counts.barriers, 5u * 4);
  EXPECT_EQ(counts.dynamic_shared_bytes, 2800);
  EXPECT_EQ(counts.read_sectors, (5u * 2800 + 31) / 32);
  EXPECT_EQ(counts.written_sectors, (5u * 2800 + 31) / 32);
}

// What the gate says, in the words of its file: the planted form breaks the bound that the right form keeps.
TEST(LaunchCounter, BoundsNameThePlantedBug) {
  struct Pair {
    const char *planted, *right, *bound;
  };
  const Pair pairs[] = {{"uncoalesced walk", "coalesced walk", "sectors"},
                        {"bank conflict", "padded column", "wavefronts"},
                        {"divided warp", "undivided warp", "lanes"},
                        {"redundant read", "single read", "repeats"},
                        {"atomic hot spot", "atomic once a warp", "atomics"}};
  const auto breaks = [](const char* kernel, const char* bound) {
    const auto summaries = summarise({run(kernel).counts});
    for (const Breach& breach : breaches_of(summaries.at(0), 1))
      if (breach.bound == bound) return true;
    return false;
  };
  for (const auto& [planted, right, bound] : pairs) {
    EXPECT_TRUE(breaks(planted, bound)) << planted;
    EXPECT_FALSE(breaks(right, bound)) << right;
  }
}

TEST(LaunchCounter, LargeLaunchesAreSampledEvenly) {
  const LaunchCounts all = level_2::run_sampled(UINT64_MAX).counts, some = level_2::run_sampled(2560).counts;
  EXPECT_EQ(all.blocks, 64u);
  EXPECT_EQ(some.blocks, 10u);
  EXPECT_EQ(some.grid.x, 64u);
  EXPECT_EQ(total(some, false, Access::kRead).units * 64, total(all, false, Access::kRead).units * 10);
  EXPECT_DOUBLE_EQ(some.read_sectors_of_grid, static_cast<double>(all.read_sectors));
  EXPECT_DOUBLE_EQ(all.read_sectors_of_grid, static_cast<double>(all.read_sectors));
  EXPECT_EQ(level_2::run_sampled(1).counts.blocks, 1u);
}

// Everything that is counted, by line and kind.
using Figures = std::map<std::tuple<std::string, bool, int, std::uint32_t>, std::vector<std::uint64_t>>;
Figures figures(const LaunchCounts& counts) {
  Figures result;
  for (const SiteCounts& site : counts.sites) {
    auto& sum = result[{place_of(site.site).text(), site.shared, static_cast<int>(site.access), site.bytes}];
    sum.resize(6);
    const std::uint64_t values[] = {site.requests, site.lanes,        site.units,
                                    site.ideal,    site.unique_bytes, site.repeated_bytes};
    for (std::size_t i = 0; i < 6; ++i) sum[i] += values[i];
  }
  return result;
}

TEST(LaunchCounter, DependsNeitherOnTheOrderNorOnTheOptimiser) {
  ASSERT_GT(level_2::names().size(), 15u);
  for (const std::string& name : level_2::names()) {
    const Figures expected = figures(run(name).counts);
    EXPECT_FALSE(expected.empty()) << name;
    for (const Order order : kAllOrders) {
      EXPECT_EQ(figures(level_2::run(name, order).counts), expected) << name << ", " << to_string(order);
      EXPECT_EQ(figures(level_1::run(name, order).counts), expected) << name << " at -O1, " << to_string(order);
      EXPECT_EQ(figures(level_3::run(name, order).counts), expected) << name << " at -O3, " << to_string(order);
    }
  }
}

}  // namespace
}  // namespace twinbench::kernels::simt

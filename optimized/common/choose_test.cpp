// Where nothing is measured the way with the least expected time is taken, unless a watch demands another.
#define TWINBENCH_SIMT
#include "optimized/common/choose.h"

#include <gtest/gtest.h>

#include "optimized/energy_flow/energy_carrier/expected_time.h"

namespace twinbench {
namespace {

const std::vector<Way> kWays = {{"slow", 3e-6, [] { FAIL() << "nothing is measured on simt"; }},
                                {"fast", 1e-6, [] { FAIL() << "nothing is measured on simt"; }},
                                {"middle", 2e-6, [] { FAIL() << "nothing is measured on simt"; }}};

TEST(Choose, TakesTheLeastExpectedTimeAndSaysWhy) {
  const ChoiceWatch watch;
  EXPECT_EQ(choose("a test", kWays), 1u);
  ASSERT_EQ(watch.made().size(), 1u);
  EXPECT_EQ(watch.made().front().taken, "fast");
  EXPECT_EQ(watch.made().front().why, "expected: slow 3.0 us, fast 1.0 us, middle 2.0 us");
}

TEST(Choose, TakesWhatIsDemandedWhereItHasThat) {
  {
    const ChoiceWatch watch("middle");
    EXPECT_EQ(choose("a test", kWays), 2u);
    EXPECT_EQ(watch.made().front().why, "demanded");
  }
  const ChoiceWatch watch("unknown");
  EXPECT_EQ(choose("a test", kWays), 1u);
}

TEST(Choose, TheFirstWayIsKeptWhereTheGainIsTooSmall) {
  EXPECT_EQ(choose("a test", kWays, 2.9), 1u);
  EXPECT_EQ(choose("a test", kWays, 3.1), 0u);
}

// A clock that runs alone turn, ten of them a measurement.
struct Turned {
  double seconds = 0;
  int runs = 0;
  Way way(const std::string& name, double expected, double takes) {
    return {name, expected, [this, takes] { seconds += takes, ++runs; }};
  }
  double operator()(const std::function<void()>& run) const {
    const double start = seconds;
    for (int i = 0; i < 10; ++i) run();
    return (seconds - start) / 10;
  }
};

TEST(Choose, WhatIsMeasuredDecidesWhateverWasExpectedAndOnceForAShape) {
  Turned clock;
  const ChoiceWatch watch;
  const auto taken = [&](const std::string& of, double eager, double captured) {
    return choose(of, {clock.way("eager", 1, eager), clock.way("captured", 9, captured)}, 1.05, std::cref(clock));
  };
  EXPECT_EQ(taken("steps that gain too little", 10.4e-6, 10e-6), 0u);
  EXPECT_EQ(taken("steps that gain enough", 10.6e-6, 10e-6), 1u);
  EXPECT_EQ(clock.runs, 40);
  EXPECT_EQ(taken("steps that gain enough", 1e-6, 10e-6), 1u) << "nothing is measured again";
  EXPECT_EQ(clock.runs, 40);
  ASSERT_EQ(watch.made().size(), 3u);
  EXPECT_EQ(watch.made()[1].why, "measured: eager 10.6 us, captured 10.0 us");
}

TEST(Choose, OneWayIsNoChoice) {
  const ChoiceWatch watch;
  EXPECT_EQ(choose("a test", {kWays[2]}), 0u);
  EXPECT_TRUE(watch.made().empty());
}

// Tiles: small ones where few blocks would leave a card idle, tall ones where rounds of 160 flows are the fuller, which
// depends on the card; over all cards the one that none of them is much slower with.
TEST(Choose, CarrierTilesFollowTheFlows) {
  using namespace energy_flow::energy_carrier;
  const auto best = [](std::int64_t flows, const auto&... card) {
    const Shape shape{flows, 64, 512, 2};
    std::optional<FusedTile> least;
    for (const auto tile : {FusedTile::kSmall, FusedTile::kLarge, FusedTile::kTall})
      if (expected_seconds(shape, tile, card...) < expected_seconds(shape, least, card...)) least = tile;
    return least;
  };
  const auto& [h200, rtx5090] = kExpectedCards;
  for (const ExpectedCard& card : kExpectedCards) EXPECT_EQ(best(256, card), FusedTile::kSmall);
  EXPECT_EQ(best(256), FusedTile::kSmall);
  EXPECT_EQ(best(2048, h200), FusedTile::kLarge);  // one round either way: the one of the lower tiles is shorter
  EXPECT_EQ(best(5000, h200), FusedTile::kTall);
  EXPECT_EQ(best(5000, rtx5090), FusedTile::kLarge);
  EXPECT_EQ(best(5000), FusedTile::kLarge);
}

}  // namespace
}  // namespace twinbench

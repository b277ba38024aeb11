// Clusters, grid barriers, loops that the device ends and single bytes on the host, with a planted misuse of each.
#define TWINBENCH_SIMT
#include "harness/simt/team.h"

#include <gtest/gtest.h>

#include "harness/simt/example_team_kernels.h"
#include "harness/simt/host_graph.h"
#include "harness/simt/host_launch.h"
#include "harness/simt/host_team.h"
#include "harness/simt/kernel_testing.h"
#include "kernels/common/simt_loop_graph.h"
#include "kernels/common/simt_team_launch.h"
#include "src/common/error.h"

namespace twinbench::kernels::simt {
namespace {

using examples::Misuse;

struct TeamRun {
  Report report;
  Floats output;
};

template <class Kernel>
TeamRun run_team(Kernel kernel, std::int64_t blocks, Order order, TeamOptions team) {
  Floats values(static_cast<std::size_t>(blocks) * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 64 + i / 64);
  const Buffer input(values), output(Floats(static_cast<std::size_t>(blocks))),
      partial(Floats(static_cast<std::size_t>(blocks)));
  TeamRun result;
  result.report = launch_team_on_host(
      kernel, blocks, 64, 0, {.order = order, .seed = 11}, team,
      examples::TeamArguments{.input = input.data(), .output = output.data(), .partial = partial.data()});
  result.output.assign(output.begin(), output.end());
  return result;
}

float sum_of_block(std::int64_t block) { return 63.0f * 32 + 64.0f * static_cast<float>(block); }

TEST(Clusters, ReadOneAnothersSharedMemory) {
  for (const Order order : kAllOrders)
    for (const int cluster : {1, 2, 4, 8}) {
      const TeamRun run = run_team(examples::ClusterSum<>{}, 16, order, {.cluster = cluster});
      EXPECT_TRUE(run.report.ok()) << to_string(order) << ": " << run.report.text();
      EXPECT_EQ(run.report.blocks, 16u);
      for (std::int64_t block = 0; block < 16; ++block) {
        float expected = 0;
        for (std::int64_t other = block / cluster * cluster; other < block / cluster * cluster + cluster; ++other)
          expected += sum_of_block(other);
        EXPECT_EQ(run.output[static_cast<std::size_t>(block)], expected) << block << " of clusters of " << cluster;
      }
    }
}

TEST(Clusters, MisuseIsFoundInEveryOrder) {
  for (const Order order : kAllOrders) {
    const auto found = [&](auto kernel) { return run_team(kernel, 8, order, {.cluster = 4}).report; };
    const Report before = found(examples::ClusterSum<Misuse::kNoBarrierBefore>{});
    EXPECT_TRUE(before.has(FindingKind::kRace) || before.has(FindingKind::kUninitialisedRead)) << before.text();
    const Report after = found(examples::ClusterSum<Misuse::kNoBarrierAfter>{});
    EXPECT_TRUE(after.has(FindingKind::kTeam)) << to_string(order) << after.text();
    EXPECT_NE(after.text().find("may have ended"), std::string::npos) << after.text();
    const Report some = found(examples::ClusterSum<Misuse::kSomeBlocksOnly>{});
    EXPECT_FALSE(some.ok()) << to_string(order);
  }
  // Not in clusters at all.
  const Buffer input(Floats(64)), output(Floats(1));
  const Report plain = launch_on_host(examples::ClusterSum<>{}, 1, 64, 0, {},
                                      examples::TeamArguments{.input = input.data(), .output = output.data()});
  EXPECT_TRUE(plain.has(FindingKind::kException));
  EXPECT_NE(plain.text().find("use launch_clusters"), std::string::npos) << plain.text();
}

TEST(GridBarrier, OrdersTheWholeGrid) {
  for (const Order order : kAllOrders) {
    const TeamRun run = run_team(examples::GridSum<>{}, 12, order, {.cooperative = true});
    EXPECT_TRUE(run.report.ok()) << to_string(order) << ": " << run.report.text();
    float expected = 0;
    for (std::int64_t block = 0; block < 12; ++block) expected += sum_of_block(block);
    for (const float total : run.output) EXPECT_EQ(total, expected);
  }
}

TEST(GridBarrier, AThreadThatNeverReachesItIsFound) {
  for (const Order order : kAllOrders) {
    const Report report =
        run_team(examples::GridSum<Misuse::kSomeThreadsOnly>{}, 3, order, {.cooperative = true}).report;
    ASSERT_TRUE(report.has(FindingKind::kTeam)) << report.text();
    EXPECT_NE(report.text().find("grid barrier"), std::string::npos) << report.text();
  }
  const Report plain = run_team(examples::GridSum<>{}, 3, Order::kForward, {.cluster = 1}).report;
  EXPECT_NE(plain.text().find("use launch_cooperative"), std::string::npos) << plain.text();
}

std::string refusal(const std::function<void()>& launch) {
  try {
    launch();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadLaunch);
    return error.what();
  }
  return "";
}

// Promises two blocks a multiprocessor.
struct Promising : examples::GridSum<> {
  static constexpr int kMinBlocksPerSm = 2;
};

TEST(TeamLaunch, WhatNoCardTakesIsRefusedByName) {
  const Buffer input(Floats(512 * 64)), output(Floats(512)), partial(Floats(512));
  const examples::TeamArguments a{.input = input.data(), .output = output.data(), .partial = partial.data()};
  Stream stream = current_host_stream();
  EXPECT_NE(refusal([&] { launch_clusters(examples::ClusterSum<>{}, 9, 64, 9, 0, stream, a); }).find("cluster"),
            std::string::npos);
  EXPECT_NE(refusal([&] { launch_clusters(examples::ClusterSum<>{}, 6, 64, 4, 0, stream, a); }).find("multiple"),
            std::string::npos);
  const std::string many = refusal([&] { launch_cooperative(examples::GridSum<>{}, 133, 64, 0, stream, a); });
  EXPECT_NE(many.find("133 blocks"), std::string::npos) << many;
  EXPECT_NE(many.find("at most 132"), std::string::npos) << many;
  EXPECT_EQ(refusal([&] { launch_cooperative(Promising{}, 133, 64, 0, stream, a); }), "");
  EXPECT_NE(refusal([&] { launch_cooperative(Promising{}, 133, 64, 60 * 1024, stream, a); }), "");
  EXPECT_EQ(refusal([&] { launch_clusters(examples::ClusterSum<>{}, 8, 64, 4, 0, stream, a); }), "");
}

Report halve(float start, Order order, float& end, bool forgets, bool disagrees) {
  const Buffer value(Floats{start});
  Report all;
  const auto turn = [&](HostCondition* more) {
    Report report = launch_on_host(
        examples::Halve{}, 1, 32, 0, {.order = order},
        examples::HalveArguments{.value = value.data(), .more = more, .forgets = forgets, .disagrees = disagrees});
    all.blocks += report.blocks;
    for (Finding& finding : report.findings) all.findings.push_back(finding);
    if (disagrees) more->more = false;
  };
  run_host_loop(turn, 50);
  end = value[0];
  return all;
}

TEST(LoopGraph, EndsWhenAKernelSaysSo) {
  for (const Order order : kAllOrders) {
    float end = 0;
    const Report report = halve(1000, order, end, false, false);
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(report.blocks, 10u);
    EXPECT_EQ(end, 1000.0f / 1024);
  }
  // Through the class that launchers use.
  const Buffer value(Floats{40});
  const LoopGraph loop(current_host_stream(), [&](LoopCondition more, Stream on) {
    launch(examples::Halve{}, 1, 32, 0, on, examples::HalveArguments{.value = value.data(), .more = more});
  });
  loop.launch(current_host_stream());
  EXPECT_EQ(value[0], 0.625f);
}

TEST(LoopGraph, MisuseIsFound) {
  float end = 0;
  for (const Order order : kAllOrders) {
    EXPECT_THROW(halve(4, order, end, true, false), Error);
    EXPECT_TRUE(halve(4, order, end, false, true).has(FindingKind::kException)) << to_string(order);
  }
  EXPECT_THROW(halve(INFINITY, Order::kForward, end, false, false), Error);  // no end
}

TEST(SharedBytes, SingleBytesAreJudgedEachForItself) {
  std::vector<std::uint8_t> values(64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(3 * i + 1);
  const GuardedBuffer<std::uint8_t> input(values), output(std::vector<std::uint8_t>(64));
  for (const Order order : kAllOrders) {
    run_clean(examples::ReverseBytes{}, 1, 64, order,
              examples::ByteArguments{.input = input.data(), .output = output.data()}, 64);
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(output[i], values[63 - i]);
    const Report report =
        launch_on_host(examples::ReverseBytes{}, 1, 64, 64, {.order = order},
                       examples::ByteArguments{.input = input.data(), .output = output.data(), .races = true});
    EXPECT_TRUE(report.has(FindingKind::kRace) || report.has(FindingKind::kUninitialisedRead)) << to_string(order);
  }
}

}  // namespace
}  // namespace twinbench::kernels::simt

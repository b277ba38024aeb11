// The sampler in its own process, against a fake management library that answers, is absent, or dies.
#include "harness/gpu/timeline_process.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include "harness/gpu/test_environment.h"

namespace twinbench {
namespace {

void wait_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

TEST(TimelineProcess, HandsItsSamplesOver) {
  const FakeCard card;
  TimelineProcess process("0000:3B:00.0", 0.02);
  wait_ms(200);
  const double end_s = process.seconds();
  const auto timeline = process.stop();
  EXPECT_EQ(timeline.reason, "");
  const auto& seconds = timeline.samples["seconds"];
  ASSERT_GE(seconds.size(), 3u);
  EXPECT_GT(seconds.front().get<double>(), 0.0);
  EXPECT_GE(seconds.back().get<double>(), 0.9 * end_s) << "seconds count from the parent's start";
  EXPECT_EQ(timeline.samples["power_w"].size(), seconds.size());
  EXPECT_EQ(timeline.samples["power_w"][0], 321.5);
  EXPECT_NE(process.stop().reason, "") << "a second stop has nothing to hand over";
}

TEST(TimelineProcess, ThisProcessKeepsOneThread) {
  const FakeCard card;
  TimelineProcess process;
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  EXPECT_EQ(std::distance(begin(tasks), end(tasks)), 1);
}

TEST(TimelineProcess, AnotherCardThanTheOneAskedForIsNotSampled) {
  const FakeCard card;
  TimelineProcess process("0000:99:00.0");
  const auto timeline = process.stop();
  EXPECT_TRUE(timeline.samples.is_null());
  EXPECT_NE(timeline.reason, "");
}

TEST(TimelineProcess, WithoutTheLibraryItIsNullWithAReason) {
  const TestVariable absent("TWINBENCH_NVML_LIBRARY", "/nonexistent/libnvidia-ml.so.1");
  TimelineProcess process;
  const auto timeline = process.stop();
  EXPECT_TRUE(timeline.samples.is_null());
  EXPECT_EQ(timeline.reason.rfind("nvml_absent: ", 0), 0u) << timeline.reason;
}

TEST(TimelineProcess, ASamplerThatDiesOrHangsCostsOnlyTheTimeline) {
  const FakeCard card;
  for (const char* behaviour : {"crash", "hang"}) {
    const TestVariable answer("FAKE_NVML_BEHAVIOUR", behaviour);
    TimelineProcess process("", 0.01);
    wait_ms(50);
    const auto start = std::chrono::steady_clock::now();
    const auto timeline = process.stop(0.5);
    EXPECT_TRUE(timeline.samples.is_null()) << behaviour;
    EXPECT_NE(timeline.reason.find("died or hung"), std::string::npos) << timeline.reason;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << behaviour;
  }
}

}  // namespace
}  // namespace twinbench

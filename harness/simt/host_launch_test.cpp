// The launch of the launchers' host build: refusals, findings, wild accesses, thread orders, announced events, graphs.
#define TWINBENCH_SIMT
#include "harness/simt/host_launch.h"

#include <gtest/gtest.h>

#include <map>

#include "kernels/common/simt_captured_graph.h"
#include "src/common/sanitized.h"

namespace twinbench::kernels {
namespace {

using simt::RunScope;

struct Copy {
  static constexpr int kMaxThreads = 128;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const float* from, float* to, std::int64_t count) const {
    for (std::int64_t i = simt::global_index(block); i < count; i += simt::global_count(block)) to[i] = from[i];
  }
};

// A neighbour's element without a barrier in between.
struct Racy {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, float* out) const {
    auto tile = simt::shared_array<float, 64>(block);
    const auto rank = static_cast<int>(block.thread().x);
    tile[rank] = static_cast<float>(rank);
    out[rank] = tile[63 - rank];
  }
};

// Which thread of the block came first.
struct First {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, int* next, int* rank_of) const {
    rank_of[simt::atomic_add(block, next, 1)] = static_cast<int>(block.thread().x);
  }
};

Error refusal(const std::function<void()>& launch) {
  try {
    launch();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::kInternal, "launch", "accepted", "it must be refused"};
}

class HostLaunch : public ::testing::Test {
 protected:
  Stream stream_ = current_host_stream();
  std::vector<float> from_ = std::vector<float>(300, 2.0f), to_ = std::vector<float>(300, 0.0f);

  void copy(dim3 grid, dim3 block, std::size_t shared = 0) {
    simt::launch(Copy{}, grid, block, shared, stream_, static_cast<const float*>(from_.data()), to_.data(),
                 std::int64_t{300});
  }
};

TEST_F(HostLaunch, RunsTheKernelAndAnEmptyGridNothing) {
  copy({0, 1, 1}, 1000);
  EXPECT_EQ(to_.front(), 0.0f);
  copy(2, 128);
  EXPECT_EQ(to_, from_);
}

TEST_F(HostLaunch, RefusesWhatNoCardTakesNamingKernelValueAndLimit) {
  const Error threads = refusal([&] { copy(1, 129); });
  EXPECT_EQ(threads.kind(), ErrorKind::kBadLaunch);
  EXPECT_NE(threads.field().find("Copy block"), std::string::npos) << threads.what();
  EXPECT_EQ(threads.value(), "129 x 1 x 1");
  EXPECT_NE(threads.remedy().find("from 1 to 128 threads"), std::string::npos) << threads.what();
  EXPECT_EQ(refusal([&] { copy(1, {1, 1, 65}); }).value(), "1 x 1 x 65");
  EXPECT_EQ(refusal([&] { copy(1, 0); }).value(), "0 x 1 x 1");

  const Error shared = refusal([&] { copy(1, 128, simt::kMaxSharedBytes + 1); });
  EXPECT_EQ(shared.kind(), ErrorKind::kBadLaunch);
  EXPECT_EQ(shared.value(), "101377 bytes");

  EXPECT_EQ(refusal([&] { copy({1, 65536, 1}, 1); }).value(), "1 x 65536 x 1");
  EXPECT_EQ(refusal([&] { simt::checked_blocks(std::int64_t{1} << 32); }).value(), "4294967296 blocks");
  EXPECT_EQ(refusal([&] { simt::checked_blocks(-1); }).kind(), ErrorKind::kBadLaunch);
}

TEST_F(HostLaunch, RefusesAnotherStreamThanTheRuns) {
  const RunScope run(stream_);
  copy(2, 128);
  stream_ = nullptr;
  const Error wrong = refusal([&] { copy(2, 128); });
  EXPECT_EQ(wrong.kind(), ErrorKind::kBadLaunch);
  EXPECT_NE(wrong.field().find("stream"), std::string::npos);
  EXPECT_EQ(wrong.value(), "the default stream");
}

TEST_F(HostLaunch, AFindingBecomesATypedErrorThatNamesKernelAndKind) {
  const Error race = refusal([&] { simt::launch(Racy{}, 1, 64, 0, stream_, to_.data()); });
  EXPECT_EQ(race.kind(), ErrorKind::kBadKernel);
  EXPECT_NE(race.field().find("Racy"), std::string::npos) << race.what();
  EXPECT_TRUE(race.value() == "race" || race.value() == "uninitialised shared read") << race.what();
}

TEST_F(HostLaunch, ANullOrWildPointerIsAFindingAndTheProcessGoesOn) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer ends the process first";
  const auto launch = [&](const float* from) {
    return refusal([&] { simt::launch(Copy{}, 1, 128, 0, stream_, from, to_.data(), std::int64_t{300}); });
  };
  for (int time = 0; time < 3; ++time) {
    const Error null = launch(nullptr);
    EXPECT_EQ(null.kind(), ErrorKind::kBadKernel);
    EXPECT_NE(null.remedy().find("pointer is 'null + 0x"), std::string::npos) << null.what();
  }
  const Error wild = launch(reinterpret_cast<const float*>(0x10000000));
  EXPECT_NE(wild.remedy().find("'0x10000"), std::string::npos) << wild.what();
  copy(2, 128);
  EXPECT_EQ(to_, from_);
}

TEST_F(HostLaunch, RunsTakeTheOrdersInTurnUnlessOneIsAskedFor) {
  const auto first_rank = [&] {
    const RunScope run(stream_);
    int next = 0, ranks[64] = {};
    simt::launch(First{}, 1, 64, 0, stream_, &next, static_cast<int*>(ranks));
    EXPECT_EQ(next, 64);
    return ranks[0];
  };
  simt::set_host_orders({.first = 5});  // run 1 is order 6 mod 3
  EXPECT_EQ(first_rank(), 0);
  EXPECT_EQ(first_rank(), 63);
  first_rank();
  EXPECT_EQ(first_rank(), 0);
  simt::set_host_orders(simt::host_orders_named("reverse"));
  for (int run = 0; run < 3; ++run) EXPECT_EQ(first_rank(), 63);
  simt::set_host_orders({});
  EXPECT_THROW(simt::host_orders_named("sideways"), Error);
}

std::map<std::string, int> g_launches;

TEST_F(HostLaunch, AnnouncesWhatReallyRuns) {
  device_event_observer = [](DeviceEvent event, const std::string& name) {
    if (event == DeviceEvent::kLaunch) ++g_launches[name.substr(name.rfind(':') + 1)];
  };
  copy(2, 128);
  copy({0, 1, 1}, 128);
  refusal([&] { copy(1, 129); });
  device_event_observer = nullptr;
  copy(2, 128);
  EXPECT_EQ(g_launches, (std::map<std::string, int>{{"Copy", 1}}));
}

std::map<DeviceEvent, int> g_events;

TEST_F(HostLaunch, AGraphKeepsItsArgumentsAndRunsWhenItIsStarted) {
  device_event_observer = [](DeviceEvent event, const std::string&) { ++g_events[event]; };
  std::int64_t count = 100;
  const float* from = from_.data();
  const simt::CapturedGraph graph("two copies", [&](Stream on) {
    simt::launch(Copy{}, 1, 64, 0, on, from, to_.data(), count);
    simt::launch(Copy{}, 1, 64, 0, on, from, to_.data() + 200, count);
  });
  EXPECT_EQ(to_, std::vector<float>(300, 0.0f)) << "nothing of it runs";
  count = 300, from = nullptr;
  graph.launch(stream_);
  from_.assign(300, 3.0f);
  EXPECT_EQ(to_[99] + to_[100] + to_[199] + to_[200] + to_[299], 6.0f);
  graph.launch(stream_);
  EXPECT_EQ(to_[99] + to_[100] + to_[200], 6.0f) << "what lies in memory is as it is now";
  device_event_observer = nullptr;
  EXPECT_EQ(g_events, (std::map<DeviceEvent, int>{{DeviceEvent::kCapture, 1}, {DeviceEvent::kGraphLaunch, 2}}));
}

TEST_F(HostLaunch, ARefusedGraphLeavesTheHostAsItWas) {
  const auto broken = [&](Stream) { copy(2, 129); };
  EXPECT_EQ(refusal([&] { simt::CapturedGraph("too many threads", broken); }).kind(), ErrorKind::kBadLaunch);
  const auto nested = [&](Stream) { simt::CapturedGraph("inner", [&](Stream) { copy(2, 128); }); };
  EXPECT_EQ(refusal([&] { simt::CapturedGraph("outer", nested); }).kind(), ErrorKind::kBadLaunch);
  copy(2, 128);
  EXPECT_EQ(to_, from_) << "launches run again";
}

}  // namespace
}  // namespace twinbench::kernels

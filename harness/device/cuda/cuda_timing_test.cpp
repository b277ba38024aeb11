// The real timer on a real device: its self-tests, a hold that expires, a graph. Skipped, visibly, where there is no
// device.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "harness/device/bench/bench_device.h"
#include "harness/device/cuda/cuda_timer.h"
#include "harness/device/device_sample.h"
#include "harness/device/device_session.h"

namespace twinbench {
namespace {

class OnCuda : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
  }
  SteadyClock host;
};

TEST_F(OnCuda, TheSessionsSelfTestsPass) {
  const auto device = open_cuda_bench_device();
  const DeviceSession session = open_device_session(device->timer(), device->host());
  EXPECT_TRUE(session.hold.works) << session.hold.reason;
  EXPECT_TRUE(session.flush.works) << session.flush.reason << ": " << session.flush.resident_s << " s, flushed "
                                   << session.flush.flushed_s << " s";
  EXPECT_GT(session.empty_wall_s, session.empty_span_s);
  EXPECT_TRUE(session.clock_hz.has_value());
}

TEST_F(OnCuda, AHoldThatIsSynchronisedUnderExpires) {
  const auto timer = cuda::open_cuda_timer(nullptr, {.hold_limit_s = 0.2});
  const auto wait = [&] { timer->synchronize(); };
  const DeviceSample sample = take_device_sample(*timer, host, wait, {false, true});
  EXPECT_TRUE(sample.hold_expired);
  EXPECT_GE(sample.wall_s, 0.2);
  EXPECT_FALSE(take_device_sample(*timer, host, [] {}, {false, true}).hold_expired) << "the next one is fresh";
}

TEST_F(OnCuda, AThrowingBodyLeavesTheStreamFree) {
  const auto timer = cuda::open_cuda_timer(nullptr);
  EXPECT_THROW(take_device_sample(*timer, host, [] { throw std::runtime_error("planted"); }, {false, true}),
               std::runtime_error);
  EXPECT_LT(take_device_sample(*timer, host, [] {}, {}).wall_s, 1);
}

TEST_F(OnCuda, ACapturedRunReplaysAndARefusedOneLeavesTheStreamUsable) {
  const auto device = open_cuda_bench_device();
  const auto replay = device->captured([&] { device->timer().read_resident(); });
  EXPECT_GT(take_device_sample(device->timer(), host, replay, {}).span_s, 1e-6);
  EXPECT_THROW(device->captured([&] { device->timer().synchronize(); }), std::exception);
  EXPECT_GT(take_device_sample(device->timer(), host, [&] { device->timer().read_resident(); }, {}).span_s, 1e-6);
}

TEST_F(OnCuda, EveryCeilingIsMeasured) {
  const auto device = open_cuda_bench_device();
  std::vector<std::string> refused;
  const auto ceilings =
      measure_device_ceilings(device->ceiling_work(true), device->timer(), device->host(), device->name(), refused);
  EXPECT_TRUE(refused.empty()) << refused.front();
  for (const auto& ceiling : ceilings) EXPECT_GT(ceiling.value, 0) << ceiling.name;
}

}  // namespace
}  // namespace twinbench

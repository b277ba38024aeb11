// The CUDA timer, the graph capture and the checks around a launch, on a runtime without a card.
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

#include "harness/device/cuda/cuda_timer.h"
#include "harness/device/cuda/fake_runtime.h"
#include "harness/device/cuda/graph_capture.h"
#include "harness/device/cuda/timing_kernels.h"
#include "kernels/common/cuda_launch_checks.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

class OnFakeCuda : public testing::Test {
 protected:
  void SetUp() override { fake::reset_cuda_runtime(); }
  fake::CudaRuntime& runtime_ = fake::cuda_runtime();
  kernels::Stream stream_ = reinterpret_cast<kernels::Stream>(0x10);  // one that does not wait for the default stream
};

TEST_F(OnFakeCuda, TheRingHasArrivedBeforeItIsWalked) {
  const auto timer = cuda::open_cuda_timer(stream_);
  EXPECT_GE(runtime_.calls["walk"], 1);
  EXPECT_FALSE(runtime_.illegal_address) << "the ring's copy was on its way when the walk began";
}

TEST_F(OnFakeCuda, TheFakeShowsAWalkThatOvertakesItsCopy) {
  std::vector<std::uint32_t> ring(static_cast<std::size_t>(cuda::kChainLines) * cuda::kChainStride, 0), end(1);
  std::vector<std::uint32_t> chain(ring.size(), 0xffffffffu);
  cudaMemcpy(chain.data(), ring.data(), ring.size() * sizeof ring[0], cudaMemcpyHostToDevice);  // the default stream
  cuda::launch_chain_walk(chain.data(), cuda::kChainLines, end.data(), stream_);
  cudaDeviceSynchronize();
  EXPECT_TRUE(runtime_.illegal_address);
}

TEST_F(OnFakeCuda, AFlushLeavesNoLineDirtyForTheTimedWindow) {
  const auto timer = cuda::open_cuda_timer(stream_);
  timer->synchronize();
  runtime_.dirty_at_start.clear();
  timer->flush_cache();
  timer->mark_start();
  timer->mark_stop();
  timer->synchronize();
  ASSERT_EQ(runtime_.dirty_at_start.size(), 2u);
  EXPECT_LT(runtime_.dirty_at_start[0], 1024u) << "but for the stamps";
}

TEST_F(OnFakeCuda, AHoldKeepsBelowADisplaysWatchdog) {
  cuda::open_cuda_timer(stream_)->hold();
  EXPECT_EQ(runtime_.hold_limits_ns.back(), 5'000'000'000u);
  runtime_.kills_long_kernels = true;
  cuda::open_cuda_timer(stream_)->hold();
  EXPECT_EQ(runtime_.hold_limits_ns.back(), 500'000'000u);
}

TEST_F(OnFakeCuda, BlockingLaunchesAreRefusedByName) {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  try {
    cuda::open_cuda_timer(stream_);
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadArgument);
    EXPECT_EQ(error.field(), "CUDA_LAUNCH_BLOCKING");
  }
  setenv("CUDA_LAUNCH_BLOCKING", "0", 1);
  EXPECT_NO_THROW(cuda::open_cuda_timer(stream_));
  unsetenv("CUDA_LAUNCH_BLOCKING");
}

// What the capture does to the allocator: begun, ended, released.
struct Pool {
  int begun = 0, ended = 0, released = 0;
  cuda::GraphMemory memory() {
    return {[this] { ++begun; }, [this] { ++ended; }, [this] { ++released; }};
  }
};

TEST_F(OnFakeCuda, ACapturedRunReplaysAndItsPoolLivesWithIt) {
  Pool pool;
  auto replay = cuda::captured_graph(
      stream_, [&] { fake::queue_kernel(stream_); }, pool.memory());
  replay();
  replay();
  EXPECT_EQ(runtime_.calls["cudaGraphLaunch"], 2);
  EXPECT_EQ(pool.ended, 1);
  EXPECT_EQ(pool.released, 0);
  replay = nullptr;
  EXPECT_EQ(pool.released, 1);
  EXPECT_EQ(runtime_.graphs, 0);
  EXPECT_EQ(runtime_.executables, 0);
}

TEST_F(OnFakeCuda, ARefusedCaptureEndsStreamAndPoolAndTheNextOneWorks) {
  Pool pool;
  const auto waits = [] { TWINBENCH_CUDA_CHECK(cudaDeviceSynchronize()); };
  EXPECT_THROW(cuda::captured_graph(stream_, waits, pool.memory()), kernels::CudaError);
  EXPECT_FALSE(runtime_.capturing);
  EXPECT_EQ(pool.ended, 1);
  EXPECT_EQ(pool.released, 1);
  EXPECT_EQ(runtime_.graphs, 0);
  EXPECT_THROW(cuda::captured_graph(
                   stream_, [] { throw std::runtime_error("planted"); }, pool.memory()),
               std::runtime_error);
  EXPECT_EQ(pool.begun, pool.ended);
  EXPECT_EQ(pool.begun, pool.released);
  cuda::captured_graph(
      stream_, [&] { fake::queue_kernel(stream_); }, pool.memory())();
  EXPECT_EQ(runtime_.calls["cudaGraphLaunch"], 1);
}

TEST_F(OnFakeCuda, SharedMemoryIsAskedForOnceAnInstance) {
  std::atomic<std::uint64_t> first{0}, second{0};
  const int a = 0, b = 0;
  for (int launch = 0; launch < 5; ++launch) kernels::simt::allow_dynamic_shared(&a, first);
  EXPECT_EQ(runtime_.calls["cudaFuncSetAttribute"], 1);
  EXPECT_EQ(runtime_.calls["dynamic shared bytes"], kernels::simt::kMaxSharedBytes - 1024) << "all but the static part";
  kernels::simt::allow_dynamic_shared(&b, second);
  EXPECT_EQ(runtime_.calls["cudaFuncSetAttribute"], 2);
}

TEST_F(OnFakeCuda, AnEarlierErrorIsNotTheNextKernels) {
  runtime_.pending_error = cudaErrorIllegalAddress;
  const auto name = [] { return std::string("Innocent"); };
  try {
    kernels::simt::check_nothing_earlier(name);
    ADD_FAILURE() << "unseen";
  } catch (const kernels::CudaError& error) {
    EXPECT_EQ(error.expression(), "what ran before Innocent");
  }
  EXPECT_NO_THROW(kernels::simt::check_nothing_earlier(name));
  EXPECT_NO_THROW(kernels::simt::check_launched(name));
  runtime_.pending_error = cudaErrorInvalidValue;
  EXPECT_THROW(kernels::simt::check_launched(name), kernels::CudaError);
}

// A timed run and a captured one; what a test of the runtime's refusals goes through.
void time_and_capture(kernels::Stream stream, Pool& pool) {
  const auto timer = cuda::open_cuda_timer(stream);
  timer->flush_cache();
  timer->hold();
  timer->mark_start();
  timer->mark_stop();
  timer->release();
  timer->synchronize();
  (void)timer->read();
  cuda::captured_graph(
      stream, [&] { fake::queue_kernel(stream); }, pool.memory())();
  std::atomic<std::uint64_t> allowed{0};
  kernels::simt::allow_dynamic_shared(&pool, allowed);
}

TEST_F(OnFakeCuda, EveryCallThatIsRefusedIsNamedAndLeavesNothing) {
  Pool good;
  time_and_capture(stream_, good);
  const auto calls = runtime_.calls;
  int named = 0;
  for (const auto& [name, count] : calls) {
    if (!name.starts_with("cuda")) continue;
    fake::reset_cuda_runtime();
    runtime_.refuse = name;
    Pool pool;
    std::string said;
    try {
      time_and_capture(stream_, pool);
    } catch (const kernels::CudaError& error) {
      said = error.expression();
      ++named;
    }
    // What only lets go of something is too late to be an error; lines that persist are a limit not all cards have.
    const bool harmless = name.ends_with("Destroy") || name.starts_with("cudaFree") || name.ends_with("Limit");
    EXPECT_EQ(said.find(name) == std::string::npos, harmless) << name << ": " << said;
    EXPECT_EQ(runtime_.blocks, 0) << name;
    EXPECT_EQ(runtime_.events, 0) << name;
    EXPECT_EQ(runtime_.graphs, 0) << name;
    EXPECT_EQ(runtime_.executables, 0) << name;
    EXPECT_FALSE(runtime_.capturing) << name;
    EXPECT_EQ(pool.begun, pool.ended) << name;
    EXPECT_EQ(pool.begun, pool.released) << name;
  }
  EXPECT_GE(named, 18);
}

}  // namespace
}  // namespace twinbench

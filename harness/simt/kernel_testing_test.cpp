// The kernel tests' own helpers: a wrong element, a missing one, a NaN and a racing kernel each fail the test.
#include "harness/simt/kernel_testing.h"

#include <gtest/gtest-spi.h>

#include <limits>

namespace twinbench::kernels::simt {
namespace {

const Floats kExpected = {1.0f, -200.0f, 3.0f};

TEST(KernelTesting, ClosenessFailsOnAWrongElementASizeAndNan) {
  expect_close(Floats{1.0f, -200.5f, 3.0f}, kExpected, 1.0);
  expect_close_to_scale(Floats{1.0f, -200.5f, 3.0f}, kExpected, 0.005);
  EXPECT_FATAL_FAILURE(expect_close(Floats({1.0f, -198.0f, 3.0f}), kExpected, 1.0), "element 1");
  EXPECT_FATAL_FAILURE(expect_close_to_scale(Floats({1.0f, -198.0f, 3.0f}), kExpected, 0.005), "element 1");
  EXPECT_FATAL_FAILURE(expect_close(Floats({1.0f, -200.0f}), kExpected, 1.0), "size");
  EXPECT_FATAL_FAILURE(expect_close(Floats({1.0f, -200.0f, std::numeric_limits<float>::quiet_NaN()}), kExpected, 1e9),
                       "element 2");
}

struct Racing {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  void operator()(Block& block, float* out) const {
    auto shared = shared_array<float, 64>(block);
    shared[thread_rank(block)] = 1.0f;
    *out = shared[63 - thread_rank(block)];  // no barrier before it
  }
};

TEST(KernelTesting, ARunWithAFindingFails) {
  static const Buffer out(1);
  EXPECT_NONFATAL_FAILURE(run_clean(Racing{}, 1, 64, Order::kForward, out.data()), "race");
}

TEST(KernelTesting, ValuesDifferBySeedAndStayWithinTheAmplitude) {
  const Floats one = spread(1000, 1, 2.0f), two = spread(1000, 2, 2.0f);
  EXPECT_NE(one, two);
  EXPECT_EQ(one, spread(1000, 1, 2.0f));
  const auto [low, high] = std::minmax_element(one.begin(), one.end());
  EXPECT_GE(*low, -2.0f);
  EXPECT_LE(*high, 2.0f);
  EXPECT_GT(*high - *low, 3.0f);
}

}  // namespace
}  // namespace twinbench::kernels::simt

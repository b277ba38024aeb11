// What kernel tests share: values to compute with, runs in which any finding fails the test, and closeness.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "harness/simt/host.h"

namespace twinbench::kernels::simt {

using Floats = std::vector<float>;
using Buffer = GuardedBuffer<float>;

// Values in [-amplitude, amplitude], different for each seed, the same on every machine.
inline Floats spread(std::int64_t count, unsigned seed, float amplitude = 1.0f) {
  Floats values(static_cast<std::size_t>(count));
  std::uint32_t state = seed * 2654435761u + 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = amplitude * (static_cast<float>(state >> 8) * 0x1p-23f - 1.0f);
  }
  return values;
}

// Runs the kernel in that thread order; whatever the executor finds fails the test.
template <class Kernel, class Arguments>
void run_clean(Kernel kernel, Size3 grid, Size3 block, Order order, const Arguments& arguments,
               std::int64_t dynamic_shared_bytes = 0) {
  const Report report = launch_on_host(kernel, grid, block, static_cast<std::size_t>(dynamic_shared_bytes),
                                       {.order = order, .seed = 7}, arguments);
  EXPECT_TRUE(report.ok()) << to_string(order) << ": " << report.text();
}

// Every element within `tolerance` of what is expected.
template <class Got, class Expected>
void expect_close(const Got& got, const Expected& expected, double tolerance, const char* name = "result") {
  ASSERT_EQ(got.size(), expected.size()) << name;
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], tolerance) << name << " element " << i;
}

// The same with a tolerance in units of the largest expected magnitude.
template <class Got, class Expected>
void expect_close_to_scale(const Got& got, const Expected& expected, double tolerance, const char* name = "result") {
  double scale = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i)
    scale = std::max(scale, std::fabs(static_cast<double>(expected[i])));
  expect_close(got, expected, tolerance * scale, name);
}

}  // namespace twinbench::kernels::simt

// What two sets of outputs may differ by and still have the same bits.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "harness/parity/subject.h"

namespace twinbench {
namespace {

std::string differ(const at::Tensor& expected, const at::Tensor& got, double underflow) {
  return first_bit_difference({{"y", expected}}, {{"y", got}}, underflow);
}

at::Tensor nan_of_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return at::full({1}, value);
}

TEST(Bits, AnUnderflowIsLeftOutAndNothingElse) {
  constexpr double kLeast = std::numeric_limits<float>::min();
  const at::Tensor expected = at::tensor({1.0f, 4e-38f, 0.0f});
  EXPECT_EQ(differ(expected, expected.clone(), 0), "");
  const at::Tensor near = at::tensor({1.0f, 4.5e-38f, -1e-38f});
  EXPECT_NE(differ(expected, near, 0), "");
  EXPECT_EQ(differ(expected, near, kLeast), "");
  const at::Tensor beyond = at::tensor({1.0f, 5.5e-38f, 0.0f});
  EXPECT_NE(differ(expected, beyond, kLeast).find("element 1"), std::string::npos);
  const at::Tensor last_bit = at::tensor({std::nextafter(1.0f, 2.0f), 4e-38f, 0.0f});
  EXPECT_NE(differ(expected, last_bit, kLeast).find("element 0"), std::string::npos);
}

TEST(Bits, CountsAndPayloadsOfNansAreNotExcused) {
  EXPECT_NE(differ(at::tensor({1}), at::tensor({2}), 10), "");
  EXPECT_NE(differ(nan_of_bits(0x7FC00000), nan_of_bits(0x7FC00001), 10), "");
  EXPECT_NE(differ(nan_of_bits(0x7FC00000), at::tensor({0.0f}), 10), "");
}

}  // namespace
}  // namespace twinbench

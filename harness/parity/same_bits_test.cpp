// A product's bits wherever its operands begin, which checks of bits take for granted: inputs end at guard pages.
#include "harness/runner/same_bits.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace twinbench {
namespace {

[[maybe_unused]] const bool asked = (ask_for_same_bits(), true);  // before whatever test is MKL's first caller

// The same values, so many numbers after a place that is aligned to a cache line.
at::Tensor moved(const at::Tensor& values, std::int64_t numbers) {
  const at::Tensor memory = at::zeros({values.numel() + numbers}, values.options());
  return memory.narrow(0, numbers, values.numel()).view(values.sizes()).copy_(values);
}

TEST(SameBits, OfAProductWhoseOperandsBeginElsewhere) {
  for (const auto& [inner, width] : {std::pair<std::int64_t, std::int64_t>{152, 152}, {38, 152}, {152, 38}}) {
    const at::Tensor left = at::linspace(-9, 9, inner).sin().view({1, inner});
    const at::Tensor right = at::linspace(0, 99, inner * width).cos().view({inner, width});
    for (const at::Tensor& by : {right, right.t().contiguous().t()}) {
      const at::Tensor expected = left.mm(by);
      for (std::int64_t numbers = 4; numbers < 16; numbers += 4) {  // of 16 bytes, as wide loads need them
        at::Tensor out = moved(expected, numbers);
        EXPECT_TRUE(moved(left, numbers).mm(by).equal(expected))
            << "left, " << inner << " x " << width << ", " << numbers;
        EXPECT_TRUE(at::mm_out(out, left, by).equal(expected)) << "out, " << inner << " x " << width << ", " << numbers;
      }
    }
  }
}

}  // namespace
}  // namespace twinbench

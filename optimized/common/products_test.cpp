// The library's product on the CPU: bf16 operands give the exact products' sum in fp32, and nothing is allocated.
#include "optimized/common/products.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "src/common/device_event.h"

namespace twinbench {
namespace {

std::map<std::string, int> g_products;

// Against fp64: products of bf16 values are exact in fp32, so only the additions round.
double distance(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor right = at::matmul(a.to(at::kDouble), b.to(at::kDouble));
  const at::Tensor terms = at::matmul(a.to(at::kDouble).abs(), b.to(at::kDouble).abs());
  return ((out.to(at::kDouble) - right).abs() / terms).max().item<double>();
}

TEST(Products, Bf16OperandsOfAnyStridesAreAccumulatedInFp32) {
  at::manual_seed(1);
  const at::Tensor a = at::randn({37, 65}).to(at::kBFloat16), b = at::randn({29, 65}).to(at::kBFloat16);
  const at::Tensor out = at::empty({37, 29});
  multiply(out, a, b.t());
  EXPECT_LT(distance(out, a, b.t()), 65 * 6e-8);
  const at::Tensor part = at::empty({65, 10});
  multiply(part, a.t(), a.narrow(1, 3, 10));
  EXPECT_LT(distance(part, a.t(), a.narrow(1, 3, 10)), 37 * 6e-8);
  const at::Tensor batch = at::randn({3, 5, 8}).to(at::kBFloat16), weights = at::randn({3, 7, 8}).to(at::kBFloat16);
  const at::Tensor sums = at::empty({3, 5, 7});
  multiply(sums, batch, weights.transpose(1, 2));
  EXPECT_LT(distance(sums, batch, weights.transpose(1, 2)), 8 * 6e-8);
  // As a product that were rounded to bf16 would not be.
  EXPECT_GT(distance(out.to(at::kBFloat16), a, b.t()), 65 * 6e-8);
}

TEST(Products, EachIsAnnouncedByShapeAndType) {
  device_event_observer = [](DeviceEvent event, const std::string& name) {
    if (event == DeviceEvent::kProduct) ++g_products[name];
  };
  const at::Tensor a = at::ones({4, 6}), b = at::ones({6, 2}), out = at::empty({4, 2});
  multiply(out, a, b);
  multiply(out, a.to(at::kBFloat16), b.to(at::kBFloat16));
  multiply(at::empty({3, 4, 2}), a.expand({3, 4, 6}).contiguous(), b.expand({3, 6, 2}).contiguous());
  device_event_observer = nullptr;
  multiply(out, a, b);
  EXPECT_EQ(g_products,
            (std::map<std::string, int>{{"mm 4x6x2 fp32", 1}, {"mm 4x6x2 bf16", 1}, {"bmm 3x4x6x2 fp32", 1}}));
}

}  // namespace
}  // namespace twinbench

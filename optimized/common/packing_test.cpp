// The packed layout: signature order, roles, per-layer groups, rounding; and gradients back out of it.
#include "optimized/common/packing.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace twinbench {
namespace {

const Signature& signature() {
  static const Signature result{
      .sizes = {{"flows", 0}, {"in", 1}, {"out", 1}, {"layers", 1}},
      .derived = {},
      .options = {},
      .inputs = {data("x", "flows, in", from_case(1)), weight("weight", "out, in", normal(2, 1)).one_per("layers", 2),
                 bias("bias", "out", normal(3, 1)).one_per("layers", 2), gain("gain", "out", normal(9, 1))},
      .outputs = {output("y", "flows, out", {}).with_gradient(20)}};
  return result;
}

Setting setting_of(Dtype dtype) {
  Setting setting;
  setting.input_case.sizes = {{"flows", 4}, {"in", 2}, {"out", 3}, {"layers", 2}};
  setting.input_case.pass = Pass::kBackward;
  setting.dtype = dtype;
  setting.signature = &signature();
  return setting;
}

const float kThird = 1.0f / 3;  // not a bf16 number

NamedTensors inputs() {
  return {{"x", at::ones({4, 2})},           {"weight_0", at::arange(6, at::kFloat).view({3, 2})},
          {"bias_0", at::full({3}, 10.0f)},  {"weight_1", at::full({3, 2}, kThird)},
          {"bias_1", at::full({3}, kThird)}, {"gain", at::full({3}, 30.0f)},
          {"grad_y", at::ones({4, 3})}};
}

TEST(Packing, FollowsTheSignatureAndTransposesWeights) {
  const at::Tensor packed = pack_parameters(inputs(), setting_of(Dtype::kFp32));
  const std::vector<float> first = {0, 2, 4, 1, 3, 5, 10, 10, 10};  // weight_0 as [in][out], bias_0; no data
  EXPECT_TRUE(at::equal(packed.narrow(0, 0, 9), at::tensor(first)));
  EXPECT_TRUE(at::equal(packed.narrow(0, 9, 9), at::full({9}, kThird)));
  EXPECT_TRUE(at::equal(packed.narrow(0, 18, 3), at::full({3}, 30.0f)));
  EXPECT_EQ(packed.numel(), 21);
}

TEST(Packing, RoundsWeightsAloneInBf16Mode) {
  const at::Tensor packed = pack_parameters(inputs(), setting_of(Dtype::kBf16));
  const at::Tensor third = at::full({6}, kThird);
  EXPECT_TRUE(at::equal(packed.narrow(0, 9, 6), third.to(at::kBFloat16).to(at::kFloat)));
  EXPECT_FALSE(at::equal(packed.narrow(0, 9, 6), third));
  EXPECT_TRUE(at::equal(packed.narrow(0, 15, 3), at::full({3}, kThird)));
}

TEST(Packing, GradientsComeBackInTheParametersShapes) {
  const Setting setting = setting_of(Dtype::kFp32);
  const NamedTensors given = inputs(), results = zero_results(setting);
  unpack_gradients(pack_parameters(given, setting), setting, results);
  for (const char* name : {"weight_0", "bias_0", "weight_1", "bias_1", "gain"})
    EXPECT_TRUE(at::equal(results["grad_" + std::string(name)], given[name])) << name;
  EXPECT_TRUE(at::equal(results["grad_x"], at::zeros({4, 2})));
}

}  // namespace
}  // namespace twinbench

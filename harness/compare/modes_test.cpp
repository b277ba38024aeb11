// The numbers of each numeric mode, seen from both sides: what is a little less passes, what is a little more does not.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/compare/compare.h"

namespace twinbench {
namespace {

OutputSpec wide_output(Tolerance::Kind kind, Bound bound) {
  OutputSpec spec;
  spec.name = "y";
  spec.tolerance = {kind, bound, bound, "test"};
  spec.tolerance.fp16 = spec.tolerance.tf32 = bound;
  return spec;
}

struct Mode {
  Dtype dtype;
  double relative, whole_factor, cosine;
};
constexpr Mode kModes[] = {{Dtype::kFp32, 1.3e-6, 2, 0.99999},
                           {Dtype::kBf16, 1.6e-2, 3, 0.99},
                           {Dtype::kTf32, 1e-3, 3, 0.99},
                           {Dtype::kFp16, 1e-3, 3, 0.99}};

// A baseline that errs in one element by as much as the mode allows twice: of a million, which leaves its RMSE small.
TEST(Modes, OneElementMayErrByTheModesShareOfIt) {
  const at::Tensor oracle = at::ones({1'000'000}, at::kDouble);
  const OutputSpec spec = wide_output(Tolerance::Kind::kBound, {1, 1});
  for (const Mode& mode : kModes) {
    at::Tensor baseline = oracle.to(at::kFloat);
    baseline[0] += 2 * mode.relative;
    const double of_rmse = std::max(1e-5, 8 * 2 * mode.relative / 1000);
    for (const double share : {0.95, 1.1}) {
      at::Tensor candidate = oracle.to(at::kFloat);
      candidate[1] += share * (mode.relative + of_rmse);
      const auto judged = compare(spec, oracle, baseline, candidate, mode.dtype, {}, {});
      EXPECT_EQ(judged.accepted(), share < 1) << to_string(mode.dtype) << ": " << judged.reason;
    }
  }
}

// Where it errs itself by more than the mode allows, as much and no more: in that element alone.
TEST(Modes, AnElementMayErrByWhatTheBaselineDoesThere) {
  const at::Tensor oracle = at::ones({1'000'000}, at::kDouble);
  const OutputSpec spec = wide_output(Tolerance::Kind::kBound, {1, 1});
  for (const Mode& mode : kModes)
    for (const double share : {0.95, 1.1}) {
      at::Tensor baseline = oracle.to(at::kFloat), candidate = oracle.to(at::kFloat);
      baseline[0] += 40 * mode.relative;
      candidate[0] -= share * 40 * mode.relative;
      const auto judged = compare(spec, oracle, baseline, candidate, mode.dtype, {}, {});
      EXPECT_EQ(judged.accepted(), share < 1) << to_string(mode.dtype) << ": " << judged.reason;
    }
}

TEST(Modes, AWholeTensorMayErrByTheModesFactorOfItsBaseline) {
  at::manual_seed(8);
  const at::Tensor oracle = at::ones({4000}, at::kDouble), signs = at::randn({4000}, at::kDouble).sign() * 1e-3;
  const OutputSpec spec = wide_output(Tolerance::Kind::kBound, {1, 1});
  for (const Mode& mode : kModes)
    for (const double share : {0.95, 1.05}) {
      const auto judged = compare(spec, oracle, (oracle + signs).to(at::kFloat),
                                  (oracle + share * mode.whole_factor * signs).to(at::kFloat), mode.dtype, {}, {});
      EXPECT_EQ(judged.accepted(), share < 1) << to_string(mode.dtype) << ": " << judged.reason;
    }
}

// Near enough for a wide class, and turned. The baseline is turned by more, another way.
TEST(Modes, AGradientMayPointAsFarAsideAsTheModeSays) {
  at::manual_seed(9);
  const at::Tensor axes = std::get<0>(at::linalg_qr(at::randn({4000, 3}, at::kDouble)));
  const auto turned = [&](double cosine, int towards) {
    return axes.select(1, 0) * cosine + axes.select(1, towards) * std::sqrt(1 - cosine * cosine);
  };
  const OutputSpec spec = wide_output(Tolerance::Kind::kGradient, {0.5, 0});
  for (const Mode& mode : kModes)
    for (const double share : {0.9, 1.2}) {
      const at::Tensor baseline = turned(1 - 1.5 * (1 - mode.cosine), 1).to(at::kFloat);
      const at::Tensor candidate = turned(1 - share * (1 - mode.cosine), 2).to(at::kFloat);
      const auto judged = compare(spec, turned(1, 1), baseline, candidate, mode.dtype, {}, {});
      EXPECT_EQ(judged.accepted(), share < 1) << to_string(mode.dtype) << ": " << judged.reason;
    }
}

// Of a complex number in two planes either part's roundings unsettle both.
TEST(Modes, AMarkOfEitherPlaneIsOneOfTheNumber) {
  at::manual_seed(10);
  const at::Tensor oracle = at::randn({2, 40, 50}, at::kDouble), baseline = oracle.to(at::kFloat) * (1 + 1e-7);
  OutputSpec spec = wide_output(Tolerance::Kind::kBound, {2e-5, 5e-6}).of(Element::kPlanar);
  spec.tolerance.bf16 = {2e-2, 5e-3};
  at::Tensor flipped = baseline.clone();
  flipped.select(1, 7).select(1, 9).mul_(1.004);
  for (const int plane : {-1, 0, 1}) {
    at::Tensor open = at::zeros({2, 40, 50}, at::kBool);
    if (plane >= 0) open[plane][7][9] = true;
    const auto judged = compare(spec, oracle, baseline, flipped, Dtype::kBf16, open, {});
    EXPECT_EQ(judged.accepted(), plane >= 0) << plane << ": " << judged.reason;
  }
}

}  // namespace
}  // namespace twinbench

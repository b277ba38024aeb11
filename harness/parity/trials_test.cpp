// What a trial of honest arithmetic moves: numbers that were drawn, and none that a case planted on a bound.
#include "harness/parity/trials.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

namespace twinbench {
namespace {

// The awkward energies of flow_backward: beyond -10 a clamp has no gradient, and what it had would widen every rule.
TEST(Trials, AWholeNumberIsNoRoundedOne) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const at::Tensor planted = at::tensor({-10.0, 0.0, 1.0, kInfinity, -kInfinity}, at::kFloat);
  const at::Tensor drawn = at::tensor({-10.5, 0.1, 1.0000001, 1e-20, -3.7}, at::kFloat);
  const at::Tensor key = at::tensor({7, 8}, at::kLong);
  NamedTensors inputs;
  inputs.set("x", at::stack({planted, drawn}));
  inputs.set("key", key);
  at::Tensor most = at::zeros(drawn.sizes(), at::kDouble);
  for (std::uint64_t trial = 1; trial <= 8; ++trial) {
    const NamedTensors moved = moved_inputs(inputs, trial);
    EXPECT_TRUE(moved["x"][0].equal(planted));
    EXPECT_TRUE(moved["key"].equal(key));
    most = at::maximum(most, (moved["x"][1].to(at::kDouble) / drawn.to(at::kDouble) - 1).abs());
  }
  EXPECT_TRUE(most.gt(0).all().item<bool>()) << most;
  EXPECT_LE(most.max().item<double>(), 2 * kLastPlace);
}

}  // namespace
}  // namespace twinbench

// A state that grows from run to run: its bound grows with it, and work that a later run leaves out is still seen.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/parity/parity.h"
#include "src/inputs.h"
#include "src/make_runnable.h"

namespace twinbench {
namespace {

constexpr double kGrowth = 8;

// state <- 8 state, rounded once or, by a detour over larger numbers, to some places of the largest; `idle`: in the
// first run alone.
template <bool kDetour>
class Growing : public Runnable {
 public:
  Growing(const NamedTensors& inputs, const Setting& setting)
      : given_(inputs["state"]), idle_(kDetour && setting.on("idle")) {}
  void run() override {
    const bool first = !state_.defined();
    if (first) state_ = given_;
    if (!first && idle_) return;
    state_ = state_ * kGrowth;
    if (!kDetour) return;
    const at::Tensor far = state_.abs().max() * 8;
    state_ = (state_ + far) - far;
  }
  NamedTensors outputs() override { return {{"state", state_}}; }
  void reset() override { state_ = at::Tensor(); }

 private:
  at::Tensor given_, state_;
  const bool idle_;
};

Component growing() {
  Component component;
  component.spec.pipeline = "test";
  component.spec.name = "growing";
  component.spec.signature = {
      .sizes = {{"n", 0}},
      .options = {switch_option("idle", false, "later runs do nothing")},
      .inputs = {state("state", "n", from_case(1))},
      .outputs = {output("state", "n", {Tolerance::Kind::kBound, {0, 1e-6}, {0, 1e-6}, "test"}).batch(std::nullopt)},
  };
  component.spec.bound_factor = [](const std::string&, const NamedTensors& inputs, const Setting&) {
    return std::clamp(kGrowth * inputs["state"].abs().max().item<double>(), 1.0, 1e6);
  };
  component.baseline = make<Growing<false>>;
  component.optimized = make<Growing<true>>;
  return component;
}

CheckVerdict carried(const Component& component, double idle) {
  Setting setting;
  setting.input_case.name = "only";
  setting.input_case.sizes = {{"n", 50}};
  setting.input_case.options = {{"idle", idle}};
  const auto rows = check_cell(component, Variant::kOptimized, setting, 1, {.checks = {"carried"}});
  for (const auto& row : rows)
    if (row.check == "carried") return row.verdict;
  return CheckVerdict::kError;
}

TEST(Carried, BoundGrowsWithTheState) {
  EXPECT_EQ(carried(growing(), 0), CheckVerdict::kPass);
  EXPECT_EQ(carried(growing(), 1), CheckVerdict::kFail);
}

}  // namespace
}  // namespace twinbench

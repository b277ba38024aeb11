// Counts of a variant's own work are measured outputs: any number is right that the invariants allow, but on the host
// it comes again with the inputs, whatever was run in between.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/parity/parity.h"
#include "harness/parity/reference.h"
#include "harness/parity/test_component.h"

namespace twinbench {
namespace {

enum class Kept { kNothing, kLargest, kSum };
Kept g_kept = Kept::kNothing;

// The component's own path; what it has issued goes on from run to run, within what the specification allows.
class Keeping final : public Runnable {
 public:
  Keeping(const Component& component, const NamedTensors& inputs, const Setting& setting)
      : path_(component.make(Variant::kOptimized, inputs, setting)) {}
  void run() override { path_->run(); }
  void reset() override { path_->reset(); }
  NamedTensors outputs() override {
    NamedTensors outputs = copied_outputs_of(*path_);
    const at::Tensor& issued = outputs["steps_issued"];
    const auto own = issued.item<std::int64_t>();
    kept_ = g_kept == Kept::kLargest ? std::max(kept_, own) : g_kept == Kept::kSum ? kept_ + own : own;
    issued.fill_(kept_);
    return outputs;
  }

 private:
  static NamedTensors copied_outputs_of(Runnable& path) {
    NamedTensors copies;
    for (const auto& [name, tensor] : path.outputs()) copies.set(name, tensor.clone());
    return copies;
  }
  std::unique_ptr<Runnable> path_;
  std::int64_t kept_ = 0;
};

CheckResult row_of(const char* check, Kept kept) {
  g_kept = kept;
  static const Cell cell = find_cell("energy_flow.adaptive_stop/optimized/cpu/fp32/odd");
  static const Component& right = *cell.component;
  Component component = right;
  component.optimized = [](const NamedTensors& inputs, const Setting& setting) -> std::unique_ptr<Runnable> {
    return std::make_unique<Keeping>(right, inputs, setting);
  };
  ParityOptions options;
  options.checks = {check};
  options.repeats = 3;
  const auto rows = check_cell(component, Variant::kOptimized, cell.setting(), 1, options);
  EXPECT_EQ(rows.size(), 1u);
  return rows.front();
}

TEST(KeptCounts, WhatIsCountedOverRunsIsSeen) {
  for (const char* check : {"determinism", "stale"}) {
    EXPECT_EQ(row_of(check, Kept::kNothing).verdict, CheckVerdict::kPass) << row_of(check, Kept::kNothing).reason;
    const CheckResult sum = row_of(check, Kept::kSum);
    EXPECT_EQ(sum.verdict, CheckVerdict::kFail) << check;
    EXPECT_NE(sum.reason.find("steps_issued"), std::string::npos) << sum.reason;
  }
  // The same inputs have the same largest number: only others in between show it.
  EXPECT_EQ(row_of("determinism", Kept::kLargest).verdict, CheckVerdict::kPass);
}

// A number that is measured, and larger from the third run on than the specification allows of any.
class Slowing : public Runnable {
 public:
  Slowing(const NamedTensors& inputs, const Setting&) : x_(inputs["x"]) {}
  void run() override { ++runs_; }
  NamedTensors outputs() override {
    return {{"y", x_ * 2}, {"seconds", at::full({1}, runs_ > 2 ? 2.0 : 0.5, at::kDouble)}};
  }

 private:
  const at::Tensor x_;
  int runs_ = 0;
};

TEST(KeptCounts, WhatIsMeasuredObeysTheInvariantsOnTheWayBackToo) {
  const Tolerance measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  Component component = test_component<Slowing, Slowing>(
      "slowing", {.sizes = {{"n", 0}},
                  .inputs = {data("x", "n", from_case(1))},
                  .outputs = {exact_output("y", "n"), output("seconds", "1", measured).of(Element::kDouble)}});
  component.spec.batch_size = "n";
  component.spec.invariants = {
      {"at most a second", [](const NamedTensors&, const NamedTensors& outputs, const Setting&) -> std::string {
         return outputs["seconds"].item<double>() <= 1 ? "" : "it took longer";
       }}};
  Setting setting;
  setting.input_case.name = "only";
  setting.input_case.sizes = {{"n", 8}};
  ParityOptions options;
  options.checks = {"stale"};
  const auto rows = check_cell(component, Variant::kOptimized, setting, 1, options);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows.front().verdict, CheckVerdict::kFail);
  EXPECT_NE(rows.front().reason.find("it took longer"), std::string::npos) << rows.front().reason;
}

}  // namespace
}  // namespace twinbench

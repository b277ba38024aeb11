// What decisions may change in modes that round is set aside, no more; and what no decision explains is rejected.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "harness/compare/inputs.h"
#include "harness/parity/drawn_inputs.h"
#include "harness/parity/reference.h"
#include "harness/parity/rounding_decisions.h"
#include "harness/parity/shared_case.h"
#include "harness/runner/components_in_turn.h"
#include "src/common/error.h"
#include "src/energy_flow/common/flow_statistics.h"
#include "src/inputs.h"
#include "src/rounding.h"

namespace twinbench {
namespace {

// Goes the other way wherever a decision is closer than `within`.
class OtherWay final : public RoundingObserver {
 public:
  explicit OtherWay(double within) : within_(within) {}
  at::Tensor observe(const at::Tensor& values, Dtype mode) override { return rounded_unobserved(values, mode); }
  std::int64_t decide(std::int64_t computed, std::int64_t other, double margin) override {
    taken += margin < within_;
    return margin < within_ ? other : computed;
  }
  int taken = 0;

 private:
  const double within_;
};

struct Flows {
  const Component& component = find_component("energy_flow.flow_forward");
  Setting setting;
  NamedTensors generated;
  explicit Flows(const Case& one, std::uint64_t seed = 1234)
      : setting(completed(component.spec.signature, {one, Dtype::kBf16})),
        generated(generated_inputs(component.spec, setting, seed)) {}
};

std::vector<Case> small_cases() {
  std::vector<Case> small;
  for (const Case& one : find_component("energy_flow.flow_forward").spec.cases)
    if (!one.timed && !one.degenerate) small.push_back(one);
  return small;
}

// Some in each revision, all of them in ci/slow: an oracle that knows what hangs on a rounding takes seven runs.
std::vector<Case> cases_in_turn() {
  constexpr std::size_t kMost = 5;
  return taken_and_told(small_cases(), kMost, [](const Case& one) { return one.name; });
}

double share_of(const at::Tensor& mask) { return mask.to(at::kDouble).mean().item<double>(); }

TEST(Taint, WhatACloseDecisionMayChangeIsNotCompared) {
  int looked_at = 0, without = 0;
  for (const Case& one : cases_in_turn()) {
    const Flows flows(one);
    const Reference reference(flows.component, flows.setting, flows.generated);
    if (!reference.no_case().empty()) continue;
    const auto accepts = [&](double within, int& taken) {
      OtherWay other(within);
      CheckResult result;
      reference.judge(baseline_outputs(flows.component, flows.setting, flows.generated), result);
      taken = other.taken;
      return result.verdict == CheckVerdict::kPass;
    };
    int taken = 0;
    EXPECT_TRUE(accepts(0, taken)) << one.name;
    EXPECT_TRUE(accepts(kCloseDecision, taken)) << one.name << ": " << taken << " other decisions";
    looked_at += taken > 0;
    if (one.sizes.at("max_steps") == 0) continue;
    const bool accepted = accepts(0.2, taken);
    EXPECT_TRUE(taken == 0 || !accepted) << one.name << ": " << taken << " decisions that no rounding takes";
    without += taken == 0;
  }
  EXPECT_LE(without, 1) << "cases without a decision anywhere near";
  if (std::getenv("TWINBENCH_EVERY")) EXPECT_GT(looked_at, 3) << "cases in which a decision is close";
}

TEST(Taint, IsWithinTheSpecificationsShareWhereNoQuotaIsFull) {
  for (const Case& one : cases_in_turn()) {
    const Flows flows(one);
    OracleCache oracles;
    const auto& oracle = oracles.of(flows.component, flows.setting, flows.generated);
    const bool full = oracle.outputs["stats"].select(1, energy_flow::flow_forward::kDroppedSpawn).any().item<bool>();
    if (!oracle.tainted.contains("surface")) continue;
    EXPECT_LE(share_of(oracle.tainted["surface"]), full ? 0.5 : 0.25) << one.name;
  }
}

// Wherever an energy is compared that hangs on no rounding: elsewhere the class allows a flip, which is more.
TEST(Taint, AResultWithoutRoundingIsRejected) {
  int told = 0;
  for (const Case& one : cases_in_turn()) {
    const Flows flows(one);
    OracleCache oracles;
    const auto& oracle = oracles.of(flows.component, flows.setting, flows.generated);
    at::Tensor hangs = oracle.unsettled["surface"].logical_or(oracle.outputs["surface"].eq(0));
    if (oracle.tainted.contains("surface")) hangs = hangs.logical_or(oracle.tainted["surface"]);
    if (hangs.all().item<bool>()) continue;
    ++told;
    const Reference reference(flows.component, flows.setting, flows.generated);
    Setting exact = flows.setting;
    exact.dtype = Dtype::kFp32;
    NamedTensors outputs = baseline_outputs(flows.component, exact, flows.generated);
    outputs["margin"].fill_(1);
    CheckResult result;
    reference.judge(outputs, result);
    EXPECT_NE(result.verdict, CheckVerdict::kPass)
        << one.name << ": " << hangs.sum().item<std::int64_t>() << " of " << hangs.numel() << " hang on something";
  }
  if (std::getenv("TWINBENCH_EVERY")) EXPECT_GE(told, 8) << "cases with such an energy";
}

// A gradient of all flows is set aside where close decisions move it far; that of each flow's first energy never is,
// but for the flows that they may change.
TEST(Taint, OfAGradientIsBoundedByWhatDecisionsChange) {
  const Component& component = find_component("energy_flow.flow_backward");
  int taken = 0;
  for (const Case& one : component.spec.cases) {
    if (one.name != "tiny" && one.name != "run_c") continue;
    const Setting setting = completed(component.spec.signature, {one, Dtype::kBf16});
    const NamedTensors generated = generated_inputs(component.spec, setting, 1234);
    const Reference reference(component, setting, generated);
    const auto accepts = [&](double within) {
      NamedTensors outputs;
      {
        OtherWay other(within);
        outputs = baseline_outputs(component, setting, generated);
        taken += other.taken;
      }
      CheckResult result;
      reference.judge(outputs, result);
      return result.verdict == CheckVerdict::kPass;
    };
    EXPECT_TRUE(accepts(0)) << one.name;
    EXPECT_TRUE(accepts(kCloseDecision)) << one.name;
    EXPECT_FALSE(accepts(0.2)) << one.name << ": decisions that no rounding takes";
  }
  EXPECT_GT(taken, 0);
}

// The case plants an energy on a clamp's bound: a trial of honest arithmetic that took it beyond had no gradient there,
// which at this seed is an element that is compared.
TEST(Taint, APlantedBoundWidensNoRuleOfTheRest) {
  const Component& component = find_component("energy_flow.flow_backward");
  const auto& cases = component.spec.cases;
  const auto one = std::find_if(cases.begin(), cases.end(), [](const Case& c) { return c.name == "non_finite"; });
  ASSERT_NE(one, cases.end());
  const Setting setting = completed(component.spec.signature, {*one, Dtype::kBf16});
  const Reference reference(component, setting, generated_inputs(component.spec, setting, 126));
  const std::string output = "grad_initial_energy";
  NamedTensors outputs = reference.baseline_run();
  const at::Tensor aside = reference.set_aside(output);
  const at::Tensor compared = reference.unsettled(output).logical_or(aside).logical_not();
  const at::Tensor right = outputs[output], largest = at::nan_to_num(right.abs(), 0, 0, 0).max();
  const at::Tensor found = compared.logical_and(right.ne(0)).flatten().nonzero().flatten();
  ASSERT_TRUE(found.numel() > 0 && aside.any().item<bool>()) << "it shows nothing: take another seed";
  const auto judged = [&](double share) {
    at::Tensor moved = right.clone();
    moved.flatten()[found[0].item<std::int64_t>()].add_(largest * share);
    outputs.set(output, moved);
    CheckResult result;
    reference.judge(outputs, result);
    return result.verdict;
  };
  EXPECT_EQ(judged(0), CheckVerdict::kPass);
  EXPECT_EQ(judged(1e-3), CheckVerdict::kFail);
  EXPECT_EQ(judged(3e-3), CheckVerdict::kFail);
}

// Of this seed 27 of the case's 29 gradients are left out, so that each of them could be negated.
TEST(Taint, WhereMostSumsAreLeftOutThatIsNoPass) {
  const Component& component = find_component("energy_flow.flow_backward");
  const auto one = std::find_if(component.spec.cases.begin(), component.spec.cases.end(),
                                [](const Case& listed) { return listed.name == "stored_in_bf16"; });
  ASSERT_NE(one, component.spec.cases.end());
  const Setting setting = completed(component.spec.signature, {*one, Dtype::kFp32});
  const NamedTensors generated = generated_inputs(component.spec, setting, 1234);
  const Reference reference(component, setting, generated);
  NamedTensors outputs;
  for (const auto& [name, tensor] : baseline_outputs(component, setting, generated))
    outputs.set(name, tensor.is_floating_point() ? -tensor : tensor);
  CheckResult result;
  reference.judge(outputs, result);
  EXPECT_NE(reference.left_out(), "");
  int left_out = 0;
  for (const OutputRow& row : result.outputs) {
    EXPECT_EQ(row.judged, !reference.is_left_out(row.name)) << row.name;
    left_out += !row.judged;
  }
  EXPECT_GT(2 * left_out, static_cast<int>(result.outputs.size()));
}

// In parity another seed is taken, and where none will do, its verdict is a skip.
TEST(Taint, ASeedThatComparesMoreIsTaken) {
  const Component& component = find_component("energy_flow.flow_backward");
  for (const Case& one : component.spec.cases) {
    if (one.name != "stored_in_bf16") continue;
    const Setting setting = completed(component.spec.signature, {one, Dtype::kFp32});
    ParityOptions options;
    options.checks = {"oracle"};
    SharedCases cases;
    const auto rows = judge_cell(component, Variant::kOptimized, setting, 1234, options, cases);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].check, "drawn_again");
    EXPECT_NE(rows[1].seed, 1234u);
    EXPECT_EQ(rows[1].verdict, CheckVerdict::kPass) << rows[1].reason;
    for (const OutputRow& row : rows[1].outputs) EXPECT_TRUE(row.judged) << row.name;
  }
}

TEST(Taint, DecisionsAreThoseOfTheOracle) {
  struct Decisions final : OraclesDecisions {
    using OraclesDecisions::OraclesDecisions;
    at::Tensor observe(const at::Tensor& values, Dtype) override { return values; }
  };
  const std::vector<std::int64_t> two = {3, 4};
  const Decisions decisions(two);
  EXPECT_EQ(decided(1, 0, 0.5), 3);
  EXPECT_EQ(decided(1, 0, 0.5), 4);
  EXPECT_THROW(decided(1, 0, 0.5), Error);
}

}  // namespace
}  // namespace twinbench

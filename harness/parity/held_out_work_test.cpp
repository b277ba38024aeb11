// Held-out draws that would take too long are drawn again, by counts that every machine finds alike.
#include <gtest/gtest.h>

#include "harness/parity/drawn_inputs.h"
#include "harness/parity/held_out.h"
#include "harness/parity/shared_case.h"
#include "src/registry.h"

namespace twinbench {
namespace {

CheckResult first_row(const char* component, const Device& device, const ParityOptions& options) {
  Case held_out;
  held_out.name = kHeldOut;
  const Cell cell{&find_component(component), Variant::kOptimized, device, Dtype::kFp32, &held_out};
  SharedCases cases;
  return judge_held_out(cell, "any text", options, cases).front();
}

ParityOptions shape_alone() {
  ParityOptions options;
  options.checks = {"vacuity"};
  return options;
}

TEST(HeldOutWork, OfABaselineThatNoFormulaBounds) {
  ParityOptions options = shape_alone();
  EXPECT_EQ(first_row("energy_flow.train_step", Device(), options).verdict, CheckVerdict::kPass);
  options.most_operators = 10;
  const CheckResult row = first_row("energy_flow.train_step", Device(), options);
  EXPECT_EQ(row.verdict, CheckVerdict::kSkip);
  EXPECT_NE(row.reason.find(" operators"), std::string::npos) << row.reason;
  // A formula's work is bounded before anything runs.
  EXPECT_EQ(first_row("energy_flow.losses", Device(), options).verdict, CheckVerdict::kPass);
}

TEST(HeldOutWork, OfThreadsOnTheHost) {
  ParityOptions options = shape_alone();
  EXPECT_EQ(first_row("energy_flow.losses", Device::simt(), options).verdict, CheckVerdict::kPass);
  options.most_turns = 1;
  const CheckResult row = first_row("energy_flow.losses", Device::simt(), options);
  EXPECT_EQ(row.verdict, CheckVerdict::kSkip);
  EXPECT_NE(row.reason.find(" turns"), std::string::npos) << row.reason;
  EXPECT_EQ(first_row("energy_flow.losses", Device(), options).verdict, CheckVerdict::kPass);
}

}  // namespace
}  // namespace twinbench

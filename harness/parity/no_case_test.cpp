// Inputs of which no honest answer can be held to the rules: a gradient of nothing, words that hang on a rounding.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "harness/compare/inputs.h"
#include "harness/parity/reference.h"
#include "harness/parity/rounding_decisions.h"
#include "harness/parity/test_component.h"
#include "harness/parity/trials.h"
#include "src/inputs.h"
#include "src/rounding.h"

namespace twinbench {
namespace {

std::string no_case(const Component& component, Setting setting) {
  setting = completed(component.spec.signature, setting);
  const NamedTensors generated = generated_inputs(component.spec, setting, 1);
  return Reference(component, setting, generated).no_case();
}

// One key is left of three: its share is 1 whatever the query is.
TEST(NoCase, AGradientThatIsExactlyZero) {
  Setting setting;
  setting.input_case.name = "any";
  setting.input_case.pass = Pass::kBackward;
  setting.input_case.sizes = {{"batch", 1}, {"heads", 2}, {"queries", 5}, {"keys", 3}, {"width", 4}};
  const Component& attention = find_component("energy_flow.fused_attention");
  EXPECT_EQ(no_case(attention, setting), "");
  setting.input_case.options = {{"padding", 3}};
  EXPECT_NE(no_case(attention, setting).find("exactly zero"), std::string::npos) << no_case(attention, setting);
}

// Sums, rounded, and the bits of what came of it: among thousands some lie where rounding may go either way.
class RoundedSums : public Runnable {
 public:
  RoundedSums(const NamedTensors& inputs, const Setting& setting) : x_(inputs["x"]), mode_(setting.rounds_as()) {}
  void run() override { sums_ = rounded((x_ * x_).sum(-1), mode_); }
  NamedTensors outputs() override {
    return {{"sum", sums_}, {"word", sums_.to(at::kFloat).mul(1 << 20).to(at::kLong)}};
  }

 private:
  at::Tensor x_, sums_;
  const Dtype mode_;
};

TEST(NoCase, AnExactOutputThatHangsOnRoundings) {
  Component component = test_component<RoundedSums, RoundedSums>(
      "rounded_sums",
      {
          .sizes = {{"rows", 1}},
          .inputs = {data("x", "rows, 37", from_case(1))},
          .outputs = {output("sum", "rows", {Tolerance::Kind::kBound, {1e-5, 1e-6}, {2e-2, 1e-2}, "test"}),
                      exact_output("word", "rows", Element::kInt64)},
      });
  component.spec.dtypes = {Dtype::kBf16};
  component.spec.batch_size = "rows";
  Setting setting;
  setting.dtype = Dtype::kBf16;
  setting.input_case.name = "any";
  setting.input_case.sizes = {{"rows", 3}};
  EXPECT_EQ(no_case(component, setting), "");
  setting.input_case.sizes = {{"rows", 100'000}};
  EXPECT_NE(no_case(component, setting).find("'word' is exact: it hangs"), std::string::npos);
}

// A row for each decision, of which so many are close.
class Decides : public Runnable {
 public:
  Decides(const NamedTensors& inputs, const Setting& setting)
      : x_(inputs["x"]), mode_(setting.rounds_as()), close_(setting.size("close")) {}
  void run() override {
    y_ = rounded(x_, mode_).clone();
    for (std::int64_t row = 0; row < y_.size(0); ++row)
      if (decided(1, 0, row < close_ ? kCloseDecision / 10 : 1) == 0) y_[row].fill_(0);
  }
  NamedTensors outputs() override { return {{"y", y_}}; }

 private:
  at::Tensor x_, y_;
  const Dtype mode_;
  const std::int64_t close_;
};

TEST(NoCase, MoreThanHalfOfTheElementsHangOnCloseDecisions) {
  Component component = test_component<Decides, Decides>(
      "decides", {
                     .sizes = {{"rows", 1}, {"close", 0}},
                     .inputs = {data("x", "rows, 5", from_case(1))},
                     .outputs = {output("y", "rows, 5", {Tolerance::Kind::kBound, {1e-5, 1e-6}, {2e-2, 1e-2}, "test"})},
                 });
  component.spec.dtypes = {Dtype::kBf16};
  Setting setting;
  setting.dtype = Dtype::kBf16;
  setting.input_case.name = "any";
  setting.input_case.sizes = {{"rows", 100}, {"close", 50}};
  EXPECT_EQ(no_case(component, setting), "");
  setting.input_case.sizes["close"] = 51;
  EXPECT_NE(no_case(component, setting).find("tainted by decisions"), std::string::npos) << no_case(component, setting);
}

// A third of the surface follows from one close decision, which the baseline takes otherwise.
TEST(NoCase, ABaselineThatDecidesOtherwiseThanItsOracle) {
  const Component& bridge = find_component("energy_flow.text_bridge");
  for (const auto& one : bridge.spec.cases) {
    if (one.name != "never") continue;
    const Setting setting = completed(bridge.spec.signature, {one, Dtype::kBf16});
    const NamedTensors generated = generated_inputs(bridge.spec, setting, 57);
    const NamedTensors right = baseline_outputs(bridge, oracle_setting(setting), generated);
    const std::string why = decided_by_roundings(bridge, setting, generated, right);
    EXPECT_NE(why.find("decides otherwise"), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace twinbench

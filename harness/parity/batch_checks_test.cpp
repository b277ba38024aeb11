// Which items batch_invariance takes alone and poisoned_neighbour looks at, and how small an item's gradient is lost.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/parity/subject.h"
#include "harness/parity/test_component.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

constexpr std::int64_t kItems = 9, kWidth = 40;
enum class Fault { kNone, kAlone, kNeighbour };
Fault g_fault = Fault::kNone;
std::int64_t g_item = 0;  // that is wrong
double g_share = 0;       // kAlone: of the whole tensor's norm, by which it is

// y = 2 x, where an item is told by its first number.
template <bool kFaulty>
class Doubled : public Runnable {
 public:
  Doubled(const NamedTensors& inputs, const Setting& setting)
      : x_(inputs["x"]), items_(setting.size("items")), first_(marks()) {}
  void run() override {
    y_ = x_ * 2;
    if (!kFaulty || x_.scalar_type() != at::kFloat) return;
    if (g_fault == Fault::kAlone && items_ == 1 && x_[0][0].item<float>() == first_)
      y_ += g_share * 2 * std::sqrt(static_cast<double>(kItems - 1));  // of ones, but for the first item
    if (g_fault == Fault::kNeighbour && items_ > 1) y_.select(0, g_item).add_(x_.select(0, items_ / 2) * 0);
  }
  NamedTensors outputs() override { return {{"y", y_}}; }

 private:
  static float marks() { return static_cast<float>(g_item + 1) / 1024; }
  at::Tensor x_, y_;
  const std::int64_t items_;
  const float first_;
};

CheckResult row_of(const std::string& check, Tolerance tolerance) {
  Component component =
      test_component<Doubled<false>, Doubled<true>>("doubled", {.sizes = {{"items", 0}, {"width", 1}},
                                                                .inputs = {data("x", "items, width", not_drawn())},
                                                                .outputs = {output("y", "items, width", tolerance)}});
  component.spec.batch_size = "items";
  component.spec.finish_inputs = [](NamedTensors& inputs, const Setting& setting, std::uint64_t) {
    const std::int64_t items = setting.size("items");
    at::Tensor x = at::ones({items, setting.size("width")});
    x[0] = 1e-4;  // next to nothing
    x.select(1, 0).copy_(at::arange(1, items + 1) / 1024);
    inputs.set("x", x);
  };
  Setting setting;
  setting.input_case.name = "only";
  setting.input_case.sizes = {{"items", kItems}, {"width", kWidth}};
  ParityOptions options;
  options.checks = {check};
  const auto rows = check_cell(component, Variant::kOptimized, setting, 1, options);
  EXPECT_EQ(rows.size(), 1u);
  return rows.front();
}

const Tolerance kValues{Tolerance::Kind::kBound, {1e-6, 0}, {1e-6, 0}, "test"};
const Tolerance kTensor{Tolerance::Kind::kGradient, {1e-4, 0}, {1e-4, 0}, "test"};

TEST(BatchChecks, TheFirstTheMiddleAndTheLastItemAreTakenAlone) {
  g_fault = Fault::kNone;
  EXPECT_EQ(row_of("batch_invariance", kValues).verdict, CheckVerdict::kPass);
  g_fault = Fault::kAlone, g_share = 1e-2;
  for (const std::int64_t item : {std::int64_t{0}, kItems / 2, kItems - 1}) {
    g_item = item;
    const CheckResult row = row_of("batch_invariance", kValues);
    EXPECT_EQ(row.verdict, CheckVerdict::kFail) << item;
    EXPECT_EQ(row.reason.rfind("item " + std::to_string(item) + " of", 0), 0u) << row.reason;
  }
}

TEST(BatchChecks, BothNeighboursAndBothEndsAreLookedAt) {
  g_fault = Fault::kNone;
  EXPECT_EQ(row_of("poisoned_neighbour", kValues).verdict, CheckVerdict::kPass);
  g_fault = Fault::kNeighbour;
  for (const std::int64_t item : {kItems / 2 - 1, kItems / 2 + 1, std::int64_t{0}, kItems - 1}) {
    g_item = item;
    EXPECT_EQ(row_of("poisoned_neighbour", kValues).verdict, CheckVerdict::kFail) << item;
  }
}

// Numbers that are no finite ones are the same on both sides, and the distance is that of the others.
TEST(BatchChecks, AGradientsNotFiniteNumbersStayWhereTheyAre) {
  OutputSpec spec;
  spec.tolerance = kTensor;
  const at::Tensor one = at::tensor({1.0F, std::nanf(""), -INFINITY, 2.0F});
  EXPECT_EQ(bound_broken(spec, one, one.clone(), Dtype::kFp32), "");
  for (const auto& [place, value] : {std::pair{0, std::nanf("")}, {1, 0.0F}, {2, INFINITY}, {3, 2.01F}}) {
    at::Tensor other = one.clone();
    other[place] = value;
    EXPECT_NE(bound_broken(spec, one, other, Dtype::kFp32), "") << place;
  }
}

// The first item's own norm is small: rounding of the others' sums may hide it, a thousand times as much may not.
TEST(BatchChecks, AnItemIsLostInTheRoundingOfTheWholeAlone) {
  g_fault = Fault::kAlone, g_item = 0;
  for (const auto& [share, verdict] : {std::pair{1e-7, CheckVerdict::kPass}, {4e-5, CheckVerdict::kFail}}) {
    g_share = share;
    const CheckResult row = row_of("batch_invariance", kTensor);
    EXPECT_EQ(row.verdict, verdict) << share << ": " << row.reason;
  }
}

}  // namespace
}  // namespace twinbench

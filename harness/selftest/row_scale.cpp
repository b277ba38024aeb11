// The selftest's elementwise component: record, baseline, correct optimized twin, backward.
#include "harness/selftest/row_scale.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "src/common/error.h"
#include "src/common/philox.h"

namespace twinbench::selftest {

namespace {

// The sin: a scalar read and its temporaries in every row. Any dtype; one backward for the gradient cases.
class RowByRow : public Runnable {
 public:
  RowByRow(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs), backward_(setting.input_case.pass == Pass::kBackward) {}

  void run() override {
    const at::Tensor &x = inputs_["x"], &scale = inputs_["scale"];
    if (backward_) {
      const at::Tensor t = at::tanh(x), g = inputs_["grad_y"];
      outputs_ = {{"grad_x", g.mul(scale.unsqueeze(1)).mul(t.mul(t).neg().add(1))}, {"grad_scale", g.mul(t).sum(1)}};
      return;
    }
    at::Tensor y = at::empty(x.sizes(), x.options());
    for (std::int64_t row = 0; row < x.size(0); ++row)
      y.select(0, row).copy_(at::tanh(x.select(0, row)).mul(scale.select(0, row).item()));
    outputs_ = {{"y", y}};
  }
  NamedTensors outputs() override { return outputs_; }

 private:
  NamedTensors inputs_, outputs_;
  bool backward_;
};

void fill_normal(at::Tensor& tensor, std::uint64_t seed, std::uint32_t tag, float offset) {
  float* const values = tensor.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    const PhiloxWords words =
        philox(seed, static_cast<std::uint32_t>(i), 0, 0, philox_tag(PhiloxStream::kSyntheticData, tag));
    values[i] = philox_normal_pair(words.w[0], words.w[1]).cosine + offset;
  }
}

Signature signature() {
  const Tolerance elementwise{Tolerance::Kind::kBound, {2e-6, 2e-6}, {2e-6, 2e-6}, "elementwise"};
  const auto row = [](const char* name) { return of_inputs(count_option(name, -1, -1, 1 << 20, "this row is so")); };
  return {
      .sizes = {{"items", 0}, {"width", 1}},
      .options = {of_inputs(real_option("offset", 0, -1e9, 1e9, "of x")),
                  of_inputs(real_option("magnitude", 1, -1e30, 1e30, "of scale")), row("infinite_row"), row("nan_row")},
      .inputs = {data("x", "items, width", not_drawn()), data("scale", "items", not_drawn())},
      .outputs = {output("y", "items, width", elementwise).with_gradient(3)},
  };
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  at::Tensor x = inputs["x"], scale = inputs["scale"];
  fill_normal(x, seed, 1, static_cast<float>(setting.option("offset")));
  fill_normal(scale, seed, 2, 3);  // around 3: no row's answer is near zero
  scale.mul_(setting.option("magnitude"));
  const auto row = [&](const char* name) { return static_cast<std::int64_t>(setting.option(name)); };
  if (row("infinite_row") >= 0)
    scale.mutable_data_ptr<float>()[row("infinite_row")] = std::numeric_limits<float>::infinity();
  if (row("nan_row") >= 0)
    x.mutable_data_ptr<float>()[row("nan_row") * x.size(1)] = std::numeric_limits<float>::quiet_NaN();
  if (!setting.backward()) return;
  at::Tensor gradient = inputs["grad_y"];
  fill_normal(gradient, seed, 3, 0);
}

Golden worked_example() {
  Golden golden;
  golden.name = "tanh(1) * 2";
  golden.setting.input_case.name = "golden";
  golden.setting.input_case.sizes = {{"items", 1}, {"width", 2}};
  golden.inputs = {{"x", at::tensor({0.0f, 1.0f}).view({1, 2})}, {"scale", at::tensor({2.0f})}};
  golden.expected = {{"y", at::tensor({0.0, 1.5231883119115297}, at::kDouble).view({1, 2})}};
  return golden;
}

std::string beyond_scale(const NamedTensors& inputs, const NamedTensors& outputs, const Setting&) {
  const float *scale = inputs["scale"].const_data_ptr<float>(), *y = outputs["y"].const_data_ptr<float>();
  const std::int64_t items = outputs["y"].size(0), width = outputs["y"].size(1);
  for (std::int64_t i = 0; i < items * width; ++i)
    if (std::abs(y[i]) > std::abs(scale[i / width]))
      return "element " + std::to_string(i) + " is larger than its row's scale";
  return "";
}

}  // namespace

RowScale::RowScale(const NamedTensors& inputs, const Setting&)
    : x_(inputs["x"]),
      scale_(inputs["scale"]),
      y_(at::zeros(x_.sizes(), x_.options())),
      items_(x_.size(0)),
      width_(x_.size(1)) {
  if (x_.scalar_type() != at::kFloat)
    throw Error(ErrorKind::kBadDtype, "x", c10::toString(x_.scalar_type()), "the twin takes fp32");
}

void RowScale::run() {
  const at::Tensor x = x_.contiguous(), scale = scale_.contiguous();  // no copy where they already are
  compute(x.const_data_ptr<float>(), scale.const_data_ptr<float>(), y_.mutable_data_ptr<float>());
}

void RowScale::compute(const float* x, const float* scale, float* y) {
  for (std::int64_t i = 0; i < items_ * width_; ++i) y[i] = std::tanh(x[i]) * scale[i / width_];
}

RowScaleOrOracle::RowScaleOrOracle(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64)
    chosen_ = std::make_unique<RowByRow>(inputs, setting);
  else
    chosen_ = std::make_unique<RowScale>(inputs, setting);
}

std::unique_ptr<Runnable> row_scale_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<RowByRow>(inputs, setting);
}

Component row_scale_component(Factory optimized) {
  Component component;
  component.baseline = row_scale_baseline;
  component.optimized = optimized;
  ComponentSpec& spec = component.spec;
  spec.pipeline = "selftest";
  spec.name = "row_scale";
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.batch_size = "items";
  spec.proof = {
      {"scalar_reads", "one a row", [](const Setting& s) { return s.size("items"); }, [](const Setting&) { return 0; }},
      {"allocations", "the result; tanh, the scalar as a tensor, its cast and the product a row",
       [](const Setting& s) { return s.size("items") == 0 ? 0 : 1 + 4 * s.size("items"); },
       [](const Setting&) { return 0; }}};
  spec.goldens = {worked_example};
  spec.invariants = {{"bounded by the scale", beyond_scale}};
  return component;
}

Cost row_scale_cost(const Setting& setting) {
  const auto elements = static_cast<double>(setting.size("items") * setting.size("width"));
  return {8 * elements, elements};
}

Setting row_scale_setting(Component& component, std::int64_t items, std::int64_t width, Options options, Pass pass) {
  Setting setting;
  setting.input_case.name = "selftest";
  setting.input_case.sizes = {{"items", items}, {"width", width}};
  setting.input_case.options = std::move(options);
  setting.input_case.pass = pass;
  setting.input_case.degenerate = items == 0;
  component.spec.cases = {setting.input_case};
  return setting;
}

}  // namespace twinbench::selftest

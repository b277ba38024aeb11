// Correct twins that a careless check would call wrong: other bits, NaN, infinities, nothing at all.
#include <algorithm>
#include <cmath>

#include "harness/selftest/cases.h"
#include "harness/selftest/project.h"
#include "src/common/error.h"

namespace twinbench::selftest {

namespace {

// Works in a scratch copy, in place, and keeps it from run to run.
struct InPlaceWorkspace : RowScale {
  InPlaceWorkspace(const NamedTensors& inputs, const Setting& setting)
      : RowScale(inputs, setting), workspace_(y_.clone()) {}
  void compute(const float* x, const float* scale, float* y) override {
    float* const w = workspace_.mutable_data_ptr<float>();
    std::copy_n(x, items_ * width_, w);
    for (std::int64_t i = 0; i < items_ * width_; ++i) w[i] = std::tanh(w[i]);
    for (std::int64_t i = 0; i < items_ * width_; ++i) w[i] *= scale[i / width_];
    std::copy_n(w, items_ * width_, y);
  }
  at::Tensor workspace_;
};

// tanh by exponentials: a few units in the last place from the library's.
struct AnotherFormula : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    for (std::int64_t i = 0; i < items_ * width_; ++i) {
      const double e = std::exp(-2.0 * std::abs(static_cast<double>(x[i])));
      y[i] = static_cast<float>(std::copysign((1 - e) / (1 + e), static_cast<double>(x[i]))) * scale[i / width_];
    }
  }
};

struct RefusesStrides : RowScale {
  RefusesStrides(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    if (!x_.is_contiguous()) throw Error(ErrorKind::kBadShape, "x", "strided", "pass contiguous tensors");
  }
};

// The optimized backward: one loop for both gradients.
class LoopBackward : public Runnable {
 public:
  LoopBackward(const NamedTensors& inputs, const Setting&)
      : inputs_(inputs), grad_x_(inputs["x"].clone()), grad_scale_(inputs["scale"].clone()) {}
  void run() override {
    const at::Tensor x = inputs_["x"].contiguous(), scale = inputs_["scale"].contiguous(),
                     gradient = inputs_["grad_y"].contiguous();
    const std::int64_t width = x.size(1);
    for (std::int64_t row = 0; row < x.size(0); ++row) {
      const float s = scale.const_data_ptr<float>()[row];
      double sum = 0;
      for (std::int64_t i = row * width; i < (row + 1) * width; ++i) {
        const float t = std::tanh(x.const_data_ptr<float>()[i]), g = gradient.const_data_ptr<float>()[i];
        grad_x_.mutable_data_ptr<float>()[i] = g * s * (1 - t * t);
        sum += static_cast<double>(g) * t;
      }
      grad_scale_.mutable_data_ptr<float>()[row] = static_cast<float>(sum);
    }
  }
  NamedTensors outputs() override { return {{"grad_x", grad_x_}, {"grad_scale", grad_scale_}}; }

 private:
  NamedTensors inputs_;
  at::Tensor grad_x_, grad_scale_;
};

SelftestCase control(const std::string& name, const std::string& what, Factory optimized, std::int64_t items = 6,
                     Options options = {}) {
  SelftestCase correct{name, what, "", row_scale_component(optimized), Variant::kOptimized, nullptr, {}};
  correct.setting = row_scale_setting(correct.component, items, 13, std::move(options));
  return correct;
}

SelftestCase product(const std::string& name, const std::string& what, Summation summation, Dtype dtype) {
  SelftestCase correct{name, what, "", project_component(summation), Variant::kOptimized, nullptr, {}};
  correct.setting = project_setting(correct.component, 7, 67, 11, dtype);
  return correct;
}

SelftestCase propagated_nan() {
  SelftestCase correct =
      control("propagated_nan", "a NaN of the input shows where it must", make<RowScale>, 6, {{"nan_row", 3}});
  correct.component.spec.signature.outputs.front().nan_allowed = true;
  return correct;
}

SelftestCase backward(const std::string& name, Variant variant) {
  SelftestCase correct{
      name, "gradients in one loop, summed in fp64", "", row_scale_component(make<LoopBackward>), variant, nullptr, {}};
  correct.setting = row_scale_setting(correct.component, 4, 9, {}, Pass::kBackward);
  correct.component.spec.proof.clear();  // the counters are those of the forward
  correct.component.spec.goldens.clear();
  return correct;
}

SelftestCase equal_time() {
  SelftestCase correct{"equal_time",        "the same twin twice", "", row_scale_component(make<RowScale>),
                       Variant::kOptimized, make<RowScale>,        {}};
  correct.setting = row_scale_setting(correct.component, 60, 256);
  return correct;
}

}  // namespace

std::vector<SelftestCase> correct_controls() {
  return {
      control("correct", "the plain twin", make<RowScale>),
      control("in_place_workspace", "works in place in a buffer of its own", make<InPlaceWorkspace>),
      control("another_formula", "tanh by exponentials", make<AnotherFormula>),
      control("empty", "no items at all", make<RowScale>, 0),
      control("one_item", "a batch of one", make<RowScale>, 1),
      control("large_values", "answers of 1e30", make<RowScale>, 6, {{"magnitude", 1e30}}),
      control("small_values", "answers of 1e-12", make<RowScale>, 6, {{"magnitude", 1e-12}}),
      control("denormal_values", "answers of 1e-39", make<RowScale>, 6, {{"magnitude", 1e-39}}),
      control("infinity", "an infinite row", make<RowScale>, 6, {{"infinite_row", 1}}),
      propagated_nan(),
      control("refuses_strides", "a typed error for strided inputs", make<RefusesStrides>),
      product("plain_sum", "sums in order", Summation::kForward, Dtype::kFp32),
      product("reordered_sum", "sums from the other end", Summation::kReversed, Dtype::kFp32),
      product("blocked_sum", "sums in eight parts", Summation::kBlocked, Dtype::kFp32),
      product("bf16", "rounds its operands as the baseline does", Summation::kBlocked, Dtype::kBf16),
      product("tf32", "takes its operands as the baseline does", Summation::kBlocked, Dtype::kTf32),
      product("fp16", "rounds its operands to half precision as the baseline does", Summation::kBlocked, Dtype::kFp16),
      backward("backward", Variant::kOptimized),
      backward("backward_of_the_oracle", Variant::kBaseline),
      equal_time(),
  };
}

}  // namespace twinbench::selftest

// The selftest's matrix component and its correct twins.
#include "harness/selftest/project.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/zeros.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "src/common/philox.h"
#include "src/rounding.h"

namespace twinbench::selftest {

namespace {

class RowProducts : public Runnable {
 public:
  RowProducts(const NamedTensors& inputs, const Setting& setting)
      : x_(inputs["x"]), w_(inputs["w"]), mode_(setting.rounds_as()) {}
  void run() override {
    y_ = at::empty({x_.size(0), w_.size(1)}, x_.options());
    const at::Tensor x = rounded(x_, mode_), transposed = rounded(w_, mode_).t();
    for (std::int64_t row = 0; row < x.size(0); ++row) y_.select(0, row).copy_(at::mv(transposed, x.select(0, row)));
  }
  NamedTensors outputs() override { return {{"y", y_}}; }

 private:
  at::Tensor x_, w_, y_;
  Dtype mode_;
};

template <Summation summation>
class LoopProduct : public Runnable {
 public:
  LoopProduct(const NamedTensors& inputs, const Setting& setting)
      : x_(inputs["x"]), w_(inputs["w"]), y_(at::zeros({x_.size(0), w_.size(1)})), dtype_(setting.dtype) {}
  void run() override {
    const at::Tensor x = x_.contiguous(), w = w_.contiguous();
    const float *a = x.const_data_ptr<float>(), *b = w.const_data_ptr<float>();
    float* const y = y_.mutable_data_ptr<float>();
    const std::int64_t inner = x.size(1), columns = w.size(1);
    for (std::int64_t row = 0; row < x.size(0); ++row)
      for (std::int64_t column = 0; column < columns; ++column) {
        float partial[8] = {};
        for (std::int64_t step = 0; step < inner; ++step) {
          const std::int64_t k = summation == Summation::kReversed ? inner - 1 - step : step;
          partial[summation == Summation::kBlocked ? k % 8 : 0] +=
              rounded(a[row * inner + k]) * rounded(b[k * columns + column]);
        }
        y[row * columns + column] = ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
                                    ((partial[4] + partial[5]) + (partial[6] + partial[7]));
      }
  }
  NamedTensors outputs() override { return {{"y", y_}}; }

 private:
  float rounded(float value) const {
    if (dtype_ == Dtype::kBf16) return static_cast<float>(c10::BFloat16(value));
    return dtype_ == Dtype::kFp16 ? static_cast<float>(c10::Half(value)) : value;
  }
  at::Tensor x_, w_, y_;
  Dtype dtype_;
};

void finish_inputs(NamedTensors& inputs, const Setting&, std::uint64_t seed) {
  std::uint32_t tag = 0;
  for (auto& [name, tensor] : inputs) {
    ++tag;
    float* const values = tensor.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      const PhiloxWords words =
          philox(seed, static_cast<std::uint32_t>(i), 1, 0, philox_tag(PhiloxStream::kSyntheticData, tag));
      values[i] = philox_normal_pair(words.w[0], words.w[1]).sine;
    }
  }
}

}  // namespace

Component project_component(Summation summation) {
  Component component;
  component.baseline = make<RowProducts>;
  component.optimized = summation == Summation::kForward    ? make<LoopProduct<Summation::kForward>>
                        : summation == Summation::kReversed ? make<LoopProduct<Summation::kReversed>>
                                                            : make<LoopProduct<Summation::kBlocked>>;
  ComponentSpec& spec = component.spec;
  spec.pipeline = "selftest";
  spec.name = "project";
  spec.dtypes = {Dtype::kFp32, Dtype::kBf16, Dtype::kTf32, Dtype::kFp16};
  spec.signature = {
      .sizes = {{"items", 0}, {"inner", 1}, {"columns", 1}},
      .inputs = {data("x", "items, inner", not_drawn()), weight("w", "inner, columns", not_drawn())},
      .outputs = {output("y", "items, columns", {Tolerance::Kind::kBound, {2e-5, 2e-6}, {2e-5, 2e-6}, "op"})},
  };
  spec.finish_inputs = finish_inputs;
  spec.batch_size = "items";
  spec.proof = {
      {"aten::mv", "one a row", [](const Setting& s) { return s.size("items"); }, [](const Setting&) { return 0; }}};
  return component;
}

Setting project_setting(Component& component, std::int64_t items, std::int64_t inner, std::int64_t columns,
                        Dtype dtype) {
  Setting setting;
  setting.input_case.name = "selftest";
  setting.input_case.sizes = {{"items", items}, {"inner", inner}, {"columns", columns}};
  setting.dtype = dtype;
  component.spec.cases = {setting.input_case};
  return setting;
}

}  // namespace twinbench::selftest

// Twins that keep answers where the contents of few inputs change between timed runs, or of none: by tile, and of data
// that are integers only.
#include <ATen/ops/zeros.h>

#include <cmath>
#include <map>
#include <vector>

#include "harness/selftest/cases.h"
#include "harness/selftest/row_scale.h"
#include "src/common/philox.h"

namespace twinbench::selftest {

namespace {

// Computes the rows that have changed since the run before.
struct KeepsRows : RowScale {
  KeepsRows(const NamedTensors& inputs, const Setting& setting)
      : RowScale(inputs, setting), seen_(static_cast<std::size_t>(items_ * (width_ + 1)), std::nanf("")) {}
  void compute(const float* x, const float* scale, float* y) override {
    for (std::int64_t row = 0; row < items_; ++row, x += width_, y += width_) {
      float* const seen = seen_.data() + row * (width_ + 1);
      if (seen[width_] == scale[row] && std::equal(x, x + width_, seen)) continue;
      for (std::int64_t i = 0; i < width_; ++i) y[i] = std::tanh(x[i]) * scale[row];
      std::copy(x, x + width_, seen);
      seen[width_] = scale[row];
    }
  }
  std::vector<float> seen_;
};

// y[i, j] = tanh(tanh(tanh(tanh(k[i, j] / 64)))), of int64 alone: more work than to look an answer up.
class OfIntegers : public Runnable {
 public:
  OfIntegers(const NamedTensors& inputs, const Setting&)
      : k_(inputs["k"]), y_(at::zeros(k_.sizes(), k_.options().dtype(at::kFloat))) {}
  void run() override {
    const at::Tensor k = k_.contiguous();
    compute(k.const_data_ptr<std::int64_t>(), k.numel(), y_.mutable_data_ptr<float>());
  }
  NamedTensors outputs() override { return {{"y", y_}}; }

 protected:
  virtual void compute(const std::int64_t* k, std::int64_t count, float* y) {
    for (std::int64_t i = 0; i < count; ++i)
      y[i] = std::tanh(std::tanh(std::tanh(std::tanh(static_cast<float>(k[i]) / 64))));
  }
  at::Tensor k_, y_;
};

struct KeepsAnswersToIntegers : OfIntegers {
  using OfIntegers::OfIntegers;
  void compute(const std::int64_t* k, std::int64_t count, float* y) override {
    static auto* const answers = new std::map<std::vector<std::int64_t>, std::vector<float>>;
    auto& answer = (*answers)[{k, k + count}];
    if (answer.empty()) {
      OfIntegers::compute(k, count, y);
      answer.assign(y, y + count);
    }
    std::copy(answer.begin(), answer.end(), y);
  }
};

class IntegersRowByRow : public Runnable {
 public:
  IntegersRowByRow(const NamedTensors& inputs, const Setting& setting)
      : k_(inputs["k"]), element_(setting.dtype == Dtype::kFp64 ? at::kDouble : at::kFloat) {}
  void run() override {
    y_ = at::zeros(k_.sizes(), k_.options().dtype(element_));
    for (std::int64_t row = 0; row < k_.size(0); ++row)
      y_.select(0, row).copy_(k_.select(0, row).to(element_).div(64).tanh_().tanh_().tanh_().tanh_());
  }
  NamedTensors outputs() override { return {{"y", y_}}; }

 private:
  at::Tensor k_, y_;
  at::ScalarType element_;
};

void draw_integers(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  const bool always_the_same = setting.input_case.distribution == "constant";
  const at::Tensor k = inputs["k"];
  auto* const values = k.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < k.numel(); ++i)
    values[i] = static_cast<std::int64_t>(philox(always_the_same ? 0 : seed, static_cast<std::uint32_t>(i), 0, 0,
                                                 philox_tag(PhiloxStream::kSyntheticData, 4))
                                              .w[0] %
                                          256) -
                128;
}

SelftestCase benched(SelftestCase one) {
  one.setting.input_case.timed = true;
  one.benched = true;
  return one;
}

SelftestCase rows(const std::string& name, const std::string& what, const std::string& caught_by, Factory optimized) {
  SelftestCase one{name, what, caught_by, row_scale_component(optimized), Variant::kOptimized, nullptr, {}};
  one.setting = row_scale_setting(one.component, 60, 256);
  return benched(std::move(one));
}

SelftestCase integers(const std::string& name, const std::string& what, const std::string& caught_by,
                      Factory optimized) {
  SelftestCase one{name, what, caught_by, {}, Variant::kOptimized, nullptr, {}};
  ComponentSpec& spec = one.component.spec;
  spec.pipeline = "selftest";
  spec.name = "integers";
  spec.signature = {
      .sizes = {{"items", 1}, {"width", 1}},
      .inputs = {keys("k", "items, width")},
      .outputs = {output("y", "items, width", {Tolerance::Kind::kBound, {2e-6, 2e-6}, {2e-6, 2e-6}, "elementwise"})},
  };
  spec.finish_inputs = draw_integers;
  spec.batch_size = "items";
  one.component.baseline = make<IntegersRowByRow>;
  one.component.optimized = optimized;
  one.setting.input_case.name = "selftest";
  one.setting.input_case.sizes = {{"items", 60}, {"width", 256}};
  spec.cases = {one.setting.input_case};
  return benched(std::move(one));
}

SelftestCase constant_integers() {
  SelftestCase one =
      integers("timed_constant_data", "its data are the same under every seed", "failed", make<KeepsAnswersToIntegers>);
  one.setting.input_case.distribution = "constant";
  return one;
}

SelftestCase constant_setup_data() {
  SelftestCase one = constant_integers();
  one.name = "timed_constant_setup_data";
  one.what = "the same, and set-up may take them";
  one.component.spec.batch_size.clear();
  return one;
}

}  // namespace

std::vector<SelftestCase> memory_twins() {
  return {
      rows("timed_keeps_rows", "computes the rows that have changed since its last run", "remembers", make<KeepsRows>),
      integers("timed_integer_cache", "remembers answers by all its data, which are integers", "remembers",
               make<KeepsAnswersToIntegers>),
      constant_integers(),
      constant_setup_data(),
      rows("timed_wide_rows", "the plain twin at the same size", "", make<RowScale>),
      integers("timed_integers", "computes from integers each time", "", make<OfIntegers>),
  };
}

}  // namespace twinbench::selftest

// Planted twins that give wrong numbers: at once, on some inputs, on some runs, or in both variants alike.
#include <c10/util/BFloat16.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "harness/selftest/cases.h"
#include "harness/selftest/project.h"

namespace twinbench::selftest {

namespace {

struct Zeros : RowScale {
  using RowScale::RowScale;
  void compute(const float*, const float*, float* y) override { std::fill_n(y, items_ * width_, 0.0f); }
};

struct CopiedInput : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float*, float* y) override { std::copy_n(x, items_ * width_, y); }
};

// Vectors of eight and no tail loop.
struct DroppedTail : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    for (std::int64_t i = 0; i < items_ * width_ / 8 * 8; ++i) y[i] = std::tanh(x[i]) * scale[i / width_];
  }
};

struct OneNan : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    y[items_ * width_ / 2] = std::numeric_limits<float>::quiet_NaN();
  }
};

// Right where the answer is infinite, zero elsewhere: a normalised error over everything is NaN, and NaN > limit is
// false.
struct HidesBehindInfinity : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    for (std::int64_t i = 0; i < items_ * width_; ++i)
      if (std::isfinite(y[i])) y[i] = 0;
  }
};

struct Bf16Downgrade : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    for (std::int64_t i = 0; i < items_ * width_; ++i) y[i] = static_cast<float>(c10::BFloat16(y[i]));
  }
};

// For as long as it runs: whoever looks before and after sees nothing.
struct FlushesInRun : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    constexpr unsigned kFlush = 0x8040;  // results and operands
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | kFlush);
    RowScale::compute(x, scale, y);
    _mm_setcsr(mode);
  }
};

struct DoubleOutput : RowScale {
  using RowScale::RowScale;
  NamedTensors outputs() override { return {{"y", y_.to(at::kDouble)}}; }
};

// Computes in its setup, outside the timed region.
struct StaleBuffer : RowScale {
  StaleBuffer(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) { RowScale::run(); }
  void run() override {}
};

// Takes one of its inputs at set-up: what changes later is not seen.
struct TakenAtSetup : RowScale {
  TakenAtSetup(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    scale_ = scale_.clone();
  }
};

// Remembers answers by the address of the input, across instances.
struct PointerCache : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    static std::map<const float*, std::vector<float>>* const answers = new std::map<const float*, std::vector<float>>();
    auto& answer = (*answers)[x];
    if (answer.size() != static_cast<std::size_t>(items_ * width_)) {
      RowScale::compute(x, scale, y);
      answer.assign(y, y + items_ * width_);
    }
    std::copy(answer.begin(), answer.end(), y);
  }
};

struct WrongInLaterRuns : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    if (++runs_ > 4) y[0] += 1;
  }
  int runs_ = 0;
};

// One unit in the last place, now and then: the answer of an atomic sum.
struct Nondeterministic : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    static int calls = 0;
    RowScale::compute(x, scale, y);
    if (++calls % 2 == 0) y[1] = std::nextafter(y[1], 100.0f);
  }
};

// Zero times the next row: invisible until the neighbour is NaN.
struct TouchesNeighbour : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    for (std::int64_t i = 0; i < (items_ - 1) * width_; ++i) y[i] += 0.0f * x[i + width_];
  }
};

// A fast path for one item that nobody tried.
struct WrongAlone : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    if (items_ == 1) y[0] = 0;
  }
};

// Takes the address and ignores the strides.
struct IgnoresStrides : RowScale {
  using RowScale::RowScale;
  void run() override {
    compute(x_.const_data_ptr<float>(), scale_.const_data_ptr<float>(), y_.mutable_data_ptr<float>());
  }
};

// Takes rows for adjacent where their elements are.
struct TakesRowsForAdjacent : RowScale {
  using RowScale::RowScale;
  void run() override {
    const at::Tensor x = x_.stride(-1) == 1 ? x_ : x_.contiguous();
    compute(x.const_data_ptr<float>(), scale_.contiguous().const_data_ptr<float>(), y_.mutable_data_ptr<float>());
  }
};

// Both twins wrong alike: they agree with each other and with the oracle, which is the baseline in fp64.
struct SharedErrorOptimized : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    for (std::int64_t i = 0; i < items_ * width_; ++i) y[i] *= 1.001f;
  }
};
class SharedErrorBaseline : public Runnable {
 public:
  SharedErrorBaseline(const NamedTensors& inputs, const Setting& setting)
      : right_(row_scale_baseline(inputs, setting)) {}
  void run() override { right_->run(); }
  NamedTensors outputs() override { return {{"y", right_->outputs()["y"].mul(1.001)}}; }

 private:
  std::unique_ptr<Runnable> right_;
};

// The derivative of tanh forgotten, in the baseline: the oracle of every gradient case.
class WrongOracleGradient : public Runnable {
 public:
  WrongOracleGradient(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        right_(row_scale_baseline(inputs, setting)),
        backward_(setting.input_case.pass == Pass::kBackward) {}
  void run() override { right_->run(); }
  NamedTensors outputs() override {
    NamedTensors outputs = right_->outputs();
    if (backward_) outputs.set("grad_x", inputs_["grad_y"].mul(inputs_["scale"].unsqueeze(1)));
    return outputs;
  }

 private:
  NamedTensors inputs_;
  std::unique_ptr<Runnable> right_;
  bool backward_;
};

SelftestCase plant(const std::string& name, const std::string& what, const std::string& caught_by, Factory optimized,
                   Options options = {}) {
  SelftestCase planted{name, what, caught_by, row_scale_component(optimized), Variant::kOptimized, nullptr, {}};
  planted.setting = row_scale_setting(planted.component, 6, 13, std::move(options));
  return planted;
}

SelftestCase shared_error(const std::string& name, const std::string& caught_by, Options options) {
  SelftestCase planted = plant(name, "baseline and optimized are 0.1 % too large alike", caught_by,
                               make<SharedErrorOptimized>, std::move(options));
  planted.component.baseline = make<SharedErrorBaseline>;
  return planted;
}

SelftestCase wrong_oracle_gradient() {
  SelftestCase planted{"wrong_oracle_gradient",
                       "the baseline's backward forgets a factor",
                       "gradient",
                       row_scale_component(make<RowScale>),
                       Variant::kBaseline,
                       nullptr,
                       {}};
  planted.component.baseline = make<WrongOracleGradient>;
  planted.setting = row_scale_setting(planted.component, 3, 5, {}, Pass::kBackward);
  return planted;
}

// A constant answer in a case that is not marked degenerate: nothing could fail.
SelftestCase vacuous_case() {
  SelftestCase planted =
      plant("vacuous_case", "all answers are zero: zeros would pass", "vacuity", make<RowScale>, {{"magnitude", 0}});
  return planted;
}

// Computes in fp32 what the mode rounds.
SelftestCase not_rounded(const std::string& name, const std::string& what, Dtype dtype) {
  SelftestCase planted{name, what, "oracle", project_component(Summation::kForward), Variant::kOptimized, nullptr, {}};
  planted.component.optimized = [](const NamedTensors& inputs, const Setting& setting) {
    Setting other = setting;
    other.dtype = Dtype::kFp32;
    return project_component(Summation::kForward).optimized(inputs, other);
  };
  planted.setting = project_setting(planted.component, 7, 67, 11, dtype);
  return planted;
}

// Rounds its products too, as a framework's autocast does.
struct RoundsProducts : Runnable {
  RoundsProducts(const NamedTensors& inputs, const Setting& setting)
      : right(project_component(Summation::kForward).optimized(inputs, setting)) {}
  void run() override {
    right->run();
    y = right->outputs()["y"].to(at::kBFloat16).to(at::kFloat);
  }
  NamedTensors outputs() override { return {{"y", y}}; }
  std::unique_ptr<Runnable> right;
  at::Tensor y;
};

SelftestCase rounded_once_more() {
  SelftestCase planted =
      not_rounded("bf16_product_rounded", "rounds the products of bf16 mode, which stay fp32", Dtype::kBf16);
  planted.component.optimized = make<RoundsProducts>;
  return planted;
}

}  // namespace

std::vector<SelftestCase> wrong_answers() {
  return {
      plant("zeros", "returns zeros", "oracle", make<Zeros>),
      plant("copied_input", "returns its input", "oracle", make<CopiedInput>),
      plant("dropped_tail", "leaves out the last, partial vector", "oracle", make<DroppedTail>),
      plant("one_nan", "one element is NaN", "oracle", make<OneNan>),
      plant("matching_infinity", "right where infinite, zero elsewhere", "oracle", make<HidesBehindInfinity>,
            {{"infinite_row", 2}}),
      plant("bf16_downgrade", "rounds an fp32 answer to bf16", "oracle", make<Bf16Downgrade>),
      plant("flushes_in_run", "makes denormal numbers zero while it runs", "oracle", make<FlushesInRun>,
            {{"magnitude", 1e-39}}),
      plant("double_output", "returns fp64 where fp32 is due", "oracle", make<DoubleOutput>),
      plant("stale_buffer", "computes in its setup and not in run()", "stale", make<StaleBuffer>),
      plant("taken_at_setup", "its setup copies one of two inputs", "stale", make<TakenAtSetup>),
      plant("pointer_cache", "skips the work when the input's address repeats", "stale", make<PointerCache>),
      plant("wrong_in_later_runs", "wrong from the fifth run on", "determinism", make<WrongInLaterRuns>),
      plant("nondeterministic", "the last bit changes from run to run", "determinism", make<Nondeterministic>),
      plant("touches_neighbour", "adds zero times the next item", "poisoned_neighbour", make<TouchesNeighbour>),
      plant("wrong_alone", "wrong for a batch of one", "batch_invariance", make<WrongAlone>),
      plant("ignores_strides", "reads strided inputs as if contiguous", "non_contiguous", make<IgnoresStrides>),
      plant("takes_rows_for_adjacent", "reads rows that lie apart as if adjacent", "non_contiguous",
            make<TakesRowsForAdjacent>),
      shared_error("shared_error", "golden", {}),
      shared_error("shared_error_beyond_bound", "invariant", {{"offset", 20}}),
      wrong_oracle_gradient(),
      vacuous_case(),
      not_rounded("half_not_rounded", "computes in fp32 what fp16 mode holds in half precision", Dtype::kFp16),
      not_rounded("bf16_not_rounded", "multiplies fp32 operands where bf16 mode rounds them", Dtype::kBf16),
      rounded_once_more(),
  };
}

}  // namespace twinbench::selftest

// Twins as the bench engine times them: planted wrong ones that must get no speedup, and correct ones that keep theirs.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "harness/selftest/cases.h"
#include "harness/selftest/row_scale.h"
#include "harness/timing/processor_time.h"

namespace twinbench::selftest {

namespace {

constexpr int kRightRuns = 20;  // enough for any check that only looks at first runs

struct ConstantFactor : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    for (std::int64_t i = 0; i < items_ * width_; ++i) y[i] *= 1.01f;
  }
};

// Whatever its inputs hold later.
struct FirstAnswer : RowScale {
  using RowScale::RowScale;
  void run() override {
    if (!computed_) RowScale::run();
    computed_ = true;
  }
  bool computed_ = false;
};

// Remembers answers by the address of the input, beyond a set-up too.
struct AddressCache : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    static auto* const answers = new std::map<const float*, std::vector<float>>();
    auto& answer = (*answers)[x];
    if (answer.size() != static_cast<std::size_t>(items_ * width_)) {
      RowScale::compute(x, scale, y);
      answer.assign(y, y + items_ * width_);
    }
    std::copy(answer.begin(), answer.end(), y);
  }
};

// Computes again where LibTorch says that the input was written to.
struct VersionCache : RowScale {
  using RowScale::RowScale;
  void run() override {
    const auto version = static_cast<std::int64_t>(x_._version());
    if (version != seen_) RowScale::run();
    seen_ = version;
  }
  std::int64_t seen_ = -1;
};

struct WrongAfterFirstRuns : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    if (++runs_ > kRightRuns) y[0] += 1;
  }
  int runs_ = 0;
};

// What it leaves is right until the inputs change.
struct StopsAfterFirstRuns : RowScale {
  using RowScale::RowScale;
  void run() override {
    if (++runs_ <= kRightRuns) RowScale::run();
  }
  int runs_ = 0;
};

// The baseline that grows wrong while it is timed: its ratio is worth nothing either.
class FadingBaseline : public Runnable {
 public:
  FadingBaseline(const NamedTensors& inputs, const Setting& setting) : right_(row_scale_baseline(inputs, setting)) {}
  void run() override {
    if (++runs_ <= kRightRuns) right_->run();
  }
  NamedTensors outputs() override { return right_->outputs(); }

 private:
  std::unique_ptr<Runnable> right_;
  int runs_ = 0;
};

// Where nobody counts its instructions it does, beside its operators, twice as long what nobody needs.
class PaddedWhenLarge : public Runnable {
 public:
  PaddedWhenLarge(const NamedTensors& inputs, const Setting& setting)
      : right_(row_scale_baseline(inputs, setting)), large_(setting.size("items") > 100) {}
  void run() override {
    const double start = thread_seconds();
    right_->run();
    const double end = thread_seconds();
    while (large_ && thread_seconds() < end + 2 * (end - start)) {
    }
  }
  NamedTensors outputs() override { return right_->outputs(); }

 private:
  std::unique_ptr<Runnable> right_;
  bool large_;
};

// Rebuilds what it packed only when it is set up: the contract allows that of weights.
struct KeepsWeights : RowScale {
  KeepsWeights(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    scale_ = scale_.clone();
  }
};

SelftestCase benched(const std::string& name, const std::string& what, const std::string& caught_by,
                     Factory optimized) {
  SelftestCase one{name, what, caught_by, row_scale_component(optimized), Variant::kOptimized, nullptr, {}};
  one.setting = row_scale_setting(one.component, 6, 13);
  one.setting.input_case.timed = true;
  one.benched = true;
  return one;
}

SelftestCase fading_baseline() {
  SelftestCase one =
      benched("timed_fading_baseline", "the baseline stops computing after its first runs", "answers", make<RowScale>);
  one.component.baseline = make<FadingBaseline>;
  return one;
}

// A timed case beside a small one.
SelftestCase with_small_case(SelftestCase one, Factory baseline) {
  one.component.baseline = baseline;
  Case small = one.setting.input_case;
  small.name = "small";
  small.timed = false;
  one.component.spec.cases = {small};
  one.component.spec.cost = row_scale_cost;
  one.setting.input_case.sizes["items"] = 600;
  return one;
}

// And beside one that is small, too, but whose instructions nobody counts.
SelftestCase with_uncounted_case(SelftestCase one, Factory baseline) {
  one = with_small_case(std::move(one), baseline);
  Case uncounted = one.component.spec.cases.front();
  uncounted.name = "uncounted";
  uncounted.sizes["items"] = 3000;
  one.component.spec.cases.push_back(uncounted);
  return one;
}

SelftestCase scale_as_weight() {
  SelftestCase one = benched("timed_packed_weight", "its setup copies a weight", "", make<KeepsWeights>);
  InputSpec& scale = one.component.spec.signature.inputs.back();
  scale.role = Role::kWeight;
  scale.batch_axis = std::nullopt;
  return one;
}

}  // namespace

std::vector<SelftestCase> wrong_when_timed() {
  return {
      benched("timed_constant_factor", "1 % too large, always", "answers", make<ConstantFactor>),
      benched("timed_first_answer", "returns the answer to its first inputs", "answers", make<FirstAnswer>),
      benched("timed_address_cache", "skips the work when the input's address repeats", "answers", make<AddressCache>),
      benched("timed_version_cache", "skips the work while the input's version stays", "answers", make<VersionCache>),
      benched("timed_wrong_later", "right on its first 20 runs only", "answers", make<WrongAfterFirstRuns>),
      benched("timed_stops_later", "computes in its first 20 runs only", "answers", make<StopsAfterFirstRuns>),
      fading_baseline(),
      with_small_case(
          benched("timed_padded_baseline", "the baseline idles twice as long as it works, at the timed size", "padded",
                  make<RowScale>),
          make<PaddedWhenLarge>),
      with_uncounted_case(
          benched("timed_padded_where_uncounted", "the same also in the small case whose instructions nobody counts",
                  "padded", make<RowScale>),
          make<PaddedWhenLarge>),
  };
}

std::vector<SelftestCase> correct_when_timed() {
  return {benched("timed", "the plain twin", "", make<RowScale>),
          with_small_case(
              benched("timed_beside_small", "the same at a hundred times the small case's size", "", make<RowScale>),
              row_scale_baseline),
          scale_as_weight()};
}

}  // namespace twinbench::selftest

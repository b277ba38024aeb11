// Planted twins that are right where one looks: they compute late, for one instance, with some threads, on some inputs.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/util/BFloat16.h>

#include <chrono>
#include <cmath>
#include <future>
#include <stdexcept>
#include <thread>

#include "harness/memory/tracked_allocator.h"
#include "harness/selftest/cases.h"
#include "harness/selftest/row_scale.h"
#include "src/common/choice.h"

namespace twinbench::selftest {

namespace {

// Work goes on beside the caller and is waited for in outputs().
struct LateThread : RowScale {
  using RowScale::RowScale;
  ~LateThread() override { wait(); }
  void run() override {
    wait();
    thread_ = std::thread([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      RowScale::run();
    });
  }
  NamedTensors outputs() override {
    wait();
    return RowScale::outputs();
  }
  void wait() {
    if (thread_.joinable()) thread_.join();
  }
  std::thread thread_;
};

// Does all of its work only after reset(), which a component without state has no use for.
struct WholeAfterReset : RowScale {
  using RowScale::RowScale;
  void reset() override { whole_ = true; }
  void compute(const float* x, const float* scale, float* y) override {
    if (whole_) RowScale::compute(x, scale, y);
    whole_ = false;
  }
  bool whole_ = false;
};

// Two results of one static buffer.
struct SharedScratch : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float*) override {
    scratch().resize(static_cast<std::size_t>(items_ * width_));
    RowScale::compute(x, scale, scratch().data());
  }
  NamedTensors outputs() override {
    std::copy(scratch().begin(), scratch().end(), y_.mutable_data_ptr<float>());
    return RowScale::outputs();
  }
  static std::vector<float>& scratch() {
    static auto* const shared = new std::vector<float>;
    return *shared;
  }
};

// Its set-up packs the scale where every other set-up packs its own.
struct SharedPack : RowScale {
  SharedPack(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    pack().assign(scale_.contiguous().const_data_ptr<float>(),
                  scale_.contiguous().const_data_ptr<float>() + scale_.numel());
  }
  void compute(const float* x, const float*, float* y) override { RowScale::compute(x, pack().data(), y); }
  static std::vector<float>& pack() {
    static auto* const shared = new std::vector<float>;
    return *shared;
  }
};

// The serial path that nobody tried.
struct WrongWithOneThread : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    if (at::get_num_threads() == 1) y[items_ * width_ - 1] = 0;
  }
};

// More pieces than it has room for.
struct WrongWithManyThreads : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    if (at::get_num_threads() > 4) y[0] += y[1];
  }
};

// Right with the numbers of threads that everybody tries.
struct WrongWithOtherThreads : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    const int threads = at::get_num_threads();
    if (threads != 1 && threads != 2 && threads != 8) y[0] += y[1];
  }
};

// Of the thread that made it: another's run finds nothing to do.
struct BelongsToItsThread : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    if (std::this_thread::get_id() == maker_) RowScale::compute(x, scale, y);
  }
  const std::thread::id maker_ = std::this_thread::get_id();
};

// One scratch for all pieces: right while one piece ends before another begins.
struct PiecesShareScratch : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    if (at::get_num_threads() == 1) return RowScale::compute(x, scale, y);
    std::vector<float> scratch(static_cast<std::size_t>(items_ * width_));
    at::parallel_for(0, items_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin * width_; i < end * width_; ++i)
        scratch[static_cast<std::size_t>(i - begin * width_)] = std::tanh(x[i]) * scale[i / width_];
      std::copy_n(scratch.begin(), (end - begin) * width_, y + begin * width_);
    });
  }
};

struct PiecesShareNothing : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    at::parallel_for(0, items_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin * width_; i < end * width_; ++i) y[i] = std::tanh(x[i]) * scale[i / width_];
    });
  }
};

// Only what an observer sees is worked for.
struct WorksWhileObserved : RowScale {
  using RowScale::RowScale;
  void run() override {
    if (TrackedAllocator::instance().guarding() || at::hasCallbacks()) RowScale::run();
  }
};

// Leaves in its result what the memory held before: perhaps somebody's answer.
struct RecycledMemory : RowScale {
  using RowScale::RowScale;
  void run() override { y_ = at::empty({items_, width_}); }
};

// What it returns is no longer its own.
struct FreedView : RowScale {
  using RowScale::RowScale;
  NamedTensors outputs() override {
    const at::Tensor copy = y_.clone();
    return {{"y", at::from_blob(copy.data_ptr(), copy.sizes(), copy.options())}};
  }
};

struct AnotherNumberOfOutputs : RowScale {
  using RowScale::RowScale;
  NamedTensors outputs() override {
    if (++asked_ == 1) return RowScale::outputs();
    return {{"y", y_}, {"z", y_}};
  }
  int asked_ = 0;
};

struct ThrowsInOutputs : RowScale {
  using RowScale::RowScale;
  NamedTensors outputs() override { throw std::runtime_error("no result is there"); }
};

// The scale is ones in every case.
struct IgnoresScale : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float*, float* y) override {
    for (std::int64_t i = 0; i < items_ * width_; ++i) y[i] = std::tanh(x[i]);
  }
};

class BaselineIgnoresScale : public Runnable {
 public:
  BaselineIgnoresScale(const NamedTensors& inputs, const Setting&) : x_(inputs["x"]) {}
  void run() override { y_ = at::tanh(x_); }
  NamedTensors outputs() override { return {{"y", y_}}; }

 private:
  at::Tensor x_, y_;
};

// A baseline that rounds makes room for every twin that does.
class RoundingBaseline : public Runnable {
 public:
  RoundingBaseline(const NamedTensors& inputs, const Setting& setting) : right_(row_scale_baseline(inputs, setting)) {}
  void run() override { right_->run(); }
  NamedTensors outputs() override {
    const at::Tensor y = right_->outputs()["y"];
    return {{"y", y.scalar_type() == at::kFloat ? y.to(at::kBFloat16).to(at::kFloat) : y}};
  }

 private:
  std::unique_ptr<Runnable> right_;
};

// What a stock operator does, under the name of something faster.
struct LibraryFallback : RowScale {
  using RowScale::RowScale;
  void run() override { y_ = at::tanh(x_).mul_(scale_.unsqueeze(1)); }
};

// The gradient of the sum of all outputs, whatever came from above.
class IgnoresGradOutput : public Runnable {
 public:
  IgnoresGradOutput(const NamedTensors& inputs, const Setting&) : inputs_(inputs) {}
  void run() override {
    const at::Tensor t = at::tanh(inputs_["x"]);
    outputs_ = {{"grad_x", inputs_["scale"].unsqueeze(1).mul(t.mul(t).neg().add(1)).contiguous()},
                {"grad_scale", t.sum(1)}};
  }
  NamedTensors outputs() override { return outputs_; }

 private:
  NamedTensors inputs_, outputs_;
};

// The expected values reach the specification's own rules; from there a twin takes them.
std::vector<at::Tensor>& expected_values() {
  static auto* const values = new std::vector<at::Tensor>;
  return *values;
}
at::Tensor keep_expected(const NamedTensors& oracle_outputs, const Setting&) {
  expected_values() = {oracle_outputs["y"]};
  return at::zeros({oracle_outputs["y"].size(0)}, at::kBool);
}
struct OverwritesExpected : RowScale {
  using RowScale::RowScale;
  void run() override {
    y_.fill_(1);
    for (const auto& values : expected_values()) values.fill_(1);
  }
};

// Near what is forbidden ---------------------------------------------------------------------------------------------

struct CopiesInOutputs : RowScale {
  using RowScale::RowScale;
  NamedTensors outputs() override { return {{"y", y_.clone()}}; }
};

struct OwnThreads : RowScale {
  using RowScale::RowScale;
  void run() override {
    std::thread([this] { RowScale::run(); }).join();
  }
};

// One table for all instances, never written again.
struct SharedTable : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    static const std::vector<float> ones(1, 1.0f);
    for (std::int64_t i = 0; i < items_ * width_; ++i) y[i] = std::tanh(x[i]) * scale[i / width_] * ones[0];
  }
};

// Two result buffers by turns.
struct DoubleBuffer : RowScale {
  DoubleBuffer(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting), other_(y_.clone()) {}
  void run() override {
    std::swap(y_, other_);
    RowScale::run();
  }
  at::Tensor other_;
};

struct SplitsByThreads : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    const std::int64_t pieces = at::get_num_threads(), all = items_ * width_;
    for (std::int64_t piece = 0; piece < pieces; ++piece)
      for (std::int64_t i = all * piece / pieces; i < all * (piece + 1) / pieces; ++i)
        y[i] = std::tanh(x[i]) * scale[i / width_];
  }
};

// Chooses between two ways at set-up; here it takes the plain one.
struct TwoWays : RowScale {
  TwoWays(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    other_ = demanded_way() == "other";
    announce_choice({"rows", {"plain", "other"}, other_ ? "other" : "plain", "planted"});
  }
  bool other_;
};

struct WrongOtherWay : TwoWays {
  using TwoWays::TwoWays;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    if (other_) y[items_ * width_ - 1] = 0;
  }
};

SelftestCase plant(const std::string& name, const std::string& what, const std::string& caught_by, Factory optimized,
                   Variant variant = Variant::kOptimized) {
  SelftestCase planted{name, what, caught_by, row_scale_component(optimized), variant, nullptr, {}};
  planted.setting = row_scale_setting(planted.component, 6, 13);
  return planted;
}

// Large enough for a piece to be interrupted.
SelftestCase in_pieces(SelftestCase planted) {
  planted.setting = row_scale_setting(planted.component, 64, 500);
  return planted;
}

// The scale is one in every case and under every seed.
SelftestCase with_neutral_scale(SelftestCase planted) {
  static const auto drawn = planted.component.spec.finish_inputs;
  planted.component.spec.finish_inputs = [](NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
    drawn(inputs, setting, seed);
    at::Tensor scale = inputs["scale"];
    scale.fill_(1);
  };
  planted.component.spec.goldens.clear();
  planted.component.spec.invariants.clear();
  return planted;
}

SelftestCase dead_input() {
  SelftestCase planted = plant("dead_input", "an input on which no answer depends, in both twins", "sensitivity",
                               make<IgnoresScale>, Variant::kBaseline);
  planted.component.baseline = make<BaselineIgnoresScale>;
  return planted;
}

SelftestCase holds_of_anything() {
  SelftestCase planted =
      plant("holds_of_anything", "an invariant that every answer has", "invariant", make<RowScale>, Variant::kBaseline);
  planted.component.spec.invariants.push_back(
      {"planted", [](const NamedTensors&, const NamedTensors&, const Setting&) { return std::string(); }});
  return planted;
}

SelftestCase rounding_baseline() {
  SelftestCase planted = plant("rounding_baseline", "the baseline rounds to bf16, so that every twin may", "precision",
                               make<RowScale>, Variant::kBaseline);
  planted.component.baseline = make<RoundingBaseline>;
  Tolerance& tolerance = planted.component.spec.signature.outputs.front().tolerance;
  tolerance.fp32 = {3e-2, 3e-2};  // and so does the specification
  return planted;
}

// A roof that nobody can reach: honest code would be called impossible.
SelftestCase dear_cost() {
  SelftestCase planted =
      plant("dear_cost", "declares ten times the bytes that there are", "cost", make<RowScale>, Variant::kBaseline);
  planted.component.spec.cost = [](const Setting& setting) {
    const Cost right = row_scale_cost(setting);
    return Cost{10 * right.bytes, right.flops};
  };
  return planted;
}

SelftestCase ignores_grad_output() {
  SelftestCase planted =
      plant("ignores_grad_output", "a gradient that ignores what comes from above", "oracle", make<IgnoresGradOutput>);
  planted.setting = row_scale_setting(planted.component, 4, 9, {}, Pass::kBackward);
  planted.component.spec.proof.clear();
  planted.component.spec.goldens.clear();
  return planted;
}

SelftestCase overwrites_expected() {
  SelftestCase planted = plant("overwrites_expected", "writes its own answer over the right one", "global_state",
                               make<OverwritesExpected>);
  planted.component.spec.ambiguous = keep_expected;
  return planted;
}

}  // namespace

std::vector<SelftestCase> sly_twins() {
  return {
      plant("late_work", "computes in outputs()", "late", make<LateWork>),
      plant("late_thread", "computes on a thread that outputs() waits for", "late", make<LateThread>),
      plant("another_number_of_outputs", "returns one output more when it is asked again", "late",
            make<AnotherNumberOfOutputs>),
      plant("throws_in_outputs", "throws in outputs()", "oracle", make<ThrowsInOutputs>),
      plant("freed_view", "returns a view of memory that it gave back", "guard_bands", make<FreedView>),
      plant("shared_scratch", "all instances share one result buffer", "instances", make<SharedScratch>),
      plant("shared_pack", "all instances share what set-up packs", "instances", make<SharedPack>),
      plant("wrong_other_way", "wrong in a way that its set-up does not choose here", "ways", make<WrongOtherWay>),
      plant("whole_after_reset", "works only after reset(), which timed runs do not have", "oracle",
            make<WholeAfterReset>),
      plant("wrong_with_one_thread", "wrong where there is one thread only", "threads", make<WrongWithOneThread>),
      plant("wrong_with_many_threads", "wrong with more than four threads", "threads", make<WrongWithManyThreads>),
      plant("wrong_with_other_threads", "wrong with other numbers of threads than 1, 2 and 8", "threads",
            make<WrongWithOtherThreads>),
      plant("belongs_to_its_thread", "computes only in the thread that made it", "determinism",
            make<BelongsToItsThread>),
      in_pieces(plant("pieces_share_scratch", "its pieces compute in one scratch, each for a moment", "threads",
                      make<PiecesShareScratch>)),
      plant("works_while_observed", "computes only while somebody observes", "oracle", make<WorksWhileObserved>),
      plant("recycled_memory", "returns what its memory held before", "guard_bands", make<RecycledMemory>),
      with_neutral_scale(plant("ignores_neutral_input", "ignores an input that is one in every case", "sensitivity",
                               make<IgnoresScale>)),
      dead_input(),
      holds_of_anything(),
      rounding_baseline(),
      dear_cost(),
      plant("library_fallback", "calls the stock operator", "proof", make<LibraryFallback>),
      plant("baseline_fallback", "is its own baseline", "proof", row_scale_baseline),
      ignores_grad_output(),
      overwrites_expected(),
  };
}

namespace {

SelftestCase own_threads() {
  SelftestCase correct = plant("own_threads", "starts a thread in run() and waits for it there", "", make<OwnThreads>);
  correct.process_calls = {{"heap", 1}, {"threads", 1}};
  return correct;
}

SelftestCase pieces_share_nothing() {
  SelftestCase correct =
      in_pieces(plant("pieces_share_nothing", "works in pieces that share nothing", "", make<PiecesShareNothing>));
  correct.process_calls = {{"parallel", 1}};
  return correct;
}

}  // namespace

std::vector<SelftestCase> correct_at_the_edge() {
  return {
      plant("copies_in_outputs", "outputs() returns a copy", "", make<CopiesInOutputs>),
      own_threads(),
      pieces_share_nothing(),
      plant("forward_of_the_oracle", "the baseline itself", "", make<RowScale>, Variant::kBaseline),
      plant("two_ways", "chooses between two ways that are both right", "", make<TwoWays>),
      plant("shared_table", "all instances read one constant table", "", make<SharedTable>),
      plant("double_buffer", "two result buffers by turns", "", make<DoubleBuffer>),
      plant("splits_by_threads", "as many pieces as there are threads", "", make<SplitsByThreads>),
      with_neutral_scale(plant("neutral_input", "an input that is one in every case, and used", "", make<RowScale>)),
  };
}

}  // namespace twinbench::selftest

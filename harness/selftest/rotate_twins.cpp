// Planted and correct twins of the stateful component: state, complex numbers, declared outputs, other settings.
#include <ATen/ATen.h>

#include <limits>

#include "harness/selftest/cases.h"
#include "harness/selftest/rotate.h"
#include "harness/timing/processor_time.h"

namespace twinbench::selftest {

namespace {

struct ResetDoesNothing : Rotate {
  using Rotate::Rotate;
  void reset() override {}
};

struct ResetForgetsTheAge : Rotate {
  using Rotate::Rotate;
  void reset() override {
    const auto age = *age_.const_data_ptr<std::int64_t>();
    Rotate::reset();
    *age_.mutable_data_ptr<std::int64_t>() = age;
  }
};

// Its state stands still from the second run on.
struct RunsOnce : Rotate {
  using Rotate::Rotate;
  void reset() override {
    Rotate::reset();
    fresh_ = true;
  }
  void run() override {
    if (fresh_) Rotate::run();
    fresh_ = false;
  }
  bool fresh_ = true;
};

// The baseline, which idles for a millisecond in runs that go on from three others: those that start over are quick.
class IdlesWhenItGoesOn : public Runnable {
 public:
  IdlesWhenItGoesOn(const NamedTensors& inputs, const Setting& setting) : right_(rotate_baseline(inputs, setting)) {}
  void reset() override {
    right_->reset();
    runs_ = 0;
  }
  void run() override {
    right_->run();
    const double end = thread_seconds();
    while (runs_ >= 3 && thread_seconds() < end + 1e-3) {
    }
    ++runs_;
  }
  NamedTensors outputs() override { return right_->outputs(); }

 private:
  std::unique_ptr<Runnable> right_;
  int runs_ = 0;
};

// Works in the first runs after reset(): as many as any reference follows.
struct StopsAfterSixRuns : Rotate {
  using Rotate::Rotate;
  void reset() override {
    Rotate::reset();
    runs_ = 0;
  }
  void run() override {
    if (++runs_ <= 6) Rotate::run();
  }
  int runs_ = 0;
};

// The same, but that reset() is nothing to it: a run of its own is seen behind many alone.
struct StopsAfterThirtyRuns : Rotate {
  using Rotate::Rotate;
  void run() override {
    if (++runs_ <= 30) Rotate::run();
  }
  int runs_ = 0;
};

// Its complex input is read again when it is asked for the answer; the real ones are not.
struct ReadsComplexLate : Rotate {
  ReadsComplexLate(const NamedTensors& inputs, const Setting& setting)
      : Rotate(inputs, setting), read_(inputs["turn"]) {}
  void run() override {
    Rotate::run();
    sum_ = read_.sum();
  }
  NamedTensors outputs() override {
    NamedTensors outputs = Rotate::outputs();
    outputs.set("field", outputs["field"] + (read_.sum() - sum_));
    return outputs;
  }
  at::Tensor read_, sum_;
};

struct ResetClears : Rotate {
  using Rotate::Rotate;
  void reset() override {
    Rotate::reset();
    field_.zero_();
  }
};

// Advances the very tensor it was given, and puts it back only in reset().
struct AdvancesItsInput : Rotate {
  AdvancesItsInput(const NamedTensors& inputs, const Setting& setting) : Rotate(inputs, setting) {
    if (inputs["field"].is_contiguous()) field_ = inputs["field"];
  }
};

struct Conjugated : Rotate {
  using Rotate::Rotate;
  NamedTensors outputs() override {
    NamedTensors outputs = Rotate::outputs();
    outputs.set("field", at::conj(field_).resolve_conj());
    return outputs;
  }
};

struct ConjugatesLazily : Rotate {
  using Rotate::Rotate;
  NamedTensors outputs() override {
    NamedTensors outputs = Rotate::outputs();
    outputs.set("field", at::conj(at::conj(field_).resolve_conj()));
    return outputs;
  }
};

struct SwapsPlanes : Rotate {
  using Rotate::Rotate;
  NamedTensors outputs() override {
    NamedTensors outputs = Rotate::outputs();
    outputs.set("planes", planes_.flip({0}));
    return outputs;
  }
};

struct NanInOnePart : Rotate {
  using Rotate::Rotate;
  void run() override {
    Rotate::run();
    at::imag(field_).select(0, 1).select(0, 1).fill_(std::numeric_limits<double>::quiet_NaN());
  }
};

struct MeasuresBackwards : Rotate {
  using Rotate::Rotate;
  void run() override {
    Rotate::run();
    *seconds_.mutable_data_ptr<double>() = -1;
  }
};

struct DependsOnBlocks : Rotate {
  using Rotate::Rotate;
  void advance(Number& field, Number turn, Number drive, std::int64_t i) override {
    Rotate::advance(field, turn, drive, i);
    if (blocked_ && i == items_ * width_ - 1) field *= 1.0000002f;
  }
};

struct FarInBlocks : Rotate {
  using Rotate::Rotate;
  void advance(Number& field, Number turn, Number drive, std::int64_t i) override {
    Rotate::advance(field, turn, drive, i);
    if (blocked_) field *= 1.001f;
  }
};

struct DependsOnWorkers : Rotate {
  DependsOnWorkers(const NamedTensors& inputs, const Setting& setting)
      : Rotate(inputs, setting), workers_(setting.size("workers")) {}
  void run() override {
    Rotate::run();
    if (workers_ > 1) planes_.mul_(1.0000002);
  }
  std::int64_t workers_;
};

struct AcceptsAnyAge : Rotate {
  AcceptsAnyAge(const NamedTensors& inputs, const Setting& setting) : Rotate(inputs, setting, false) {}
};

struct AddsOnce : Rotate {
  using Rotate::Rotate;
  void run() override {
    Rotate::run();
    at::add(age_, 1);
  }
};

// Everything in fp32, in fp64 mode too: no oracle.
class FloatOracle : public Runnable {
 public:
  FloatOracle(const NamedTensors& inputs, const Setting& setting) : right_(rotate_baseline(inputs, setting)) {}
  void run() override { right_->run(); }
  void reset() override { right_->reset(); }
  NamedTensors outputs() override {
    NamedTensors outputs = right_->outputs();
    outputs.set("field", outputs["field"].to(at::kComplexFloat));
    return outputs;
  }

 private:
  std::unique_ptr<Runnable> right_;
};

// The gradient by the other convention, dL/dx - i dL/dy, in the baseline.
class OtherConvention : public Runnable {
 public:
  OtherConvention(const NamedTensors& inputs, const Setting& setting) : right_(rotate_baseline(inputs, setting)) {}
  void run() override { right_->run(); }
  void reset() override { right_->reset(); }
  NamedTensors outputs() override {
    NamedTensors outputs = right_->outputs();
    if (outputs.contains("grad_turn")) outputs.set("grad_turn", at::conj(outputs["grad_turn"]).resolve_conj());
    return outputs;
  }

 private:
  std::unique_ptr<Runnable> right_;
};

SelftestCase twin(const std::string& name, const std::string& what, const std::string& caught_by, Factory optimized,
                  Options options = {}, Pass pass = Pass::kForward, Variant variant = Variant::kOptimized) {
  SelftestCase planted{name, what, caught_by, rotate_component(optimized), variant, nullptr, {}};
  planted.setting = rotate_setting(planted.component, std::move(options), pass);
  if (pass == Pass::kBackward) {  // proof and relation are those of the forward
    planted.component.spec.proof.clear();
    planted.component.spec.relations.clear();
    planted.component.spec.refusals.clear();
  }
  return planted;
}

SelftestCase with_baseline(SelftestCase planted, Factory baseline) {
  planted.component.baseline = baseline;
  return planted;
}

// Declares another shape or other elements than the variants return.
SelftestCase declared(const std::string& name, const std::string& what, void (*change)(OutputSpec& field)) {
  SelftestCase planted = twin(name, what, "oracle", make<Rotate>);
  change(planted.component.spec.signature.outputs.front());
  return planted;
}

SelftestCase specimen(const std::string& name, const std::string& what, const std::string& caught_by,
                      const std::string& distribution) {
  SelftestCase shown =
      twin(name, what, caught_by, make<Rotate>, {{"wrong_sign", 1}}, Pass::kForward, Variant::kBaseline);
  shown.setting.input_case.specimen = "wrong_sign";
  shown.setting.input_case.distribution = distribution;
  shown.component.spec.cases = {shown.setting.input_case};
  return shown;
}

// A relation that holds within tolerance only.
SelftestCase close_relation(const std::string& name, const std::string& what, const std::string& caught_by,
                            Factory optimized) {
  SelftestCase related = twin(name, what, caught_by, optimized);
  related.component.spec.relations.front().exact = false;
  return related;
}

SelftestCase in_time(SelftestCase one) {
  one.setting.input_case.timed = true;
  one.benched = true;
  return one;
}

// Of runs that are long enough to be told apart by their time.
SelftestCase long_runs(SelftestCase one) {
  one.setting.input_case.sizes["width"] = 20'000;
  return in_time(std::move(one));
}

SelftestCase custom_gradient() {
  SelftestCase correct = with_baseline(twin("custom_gradient", "a specified gradient that is no derivative", "",
                                            rotate_backward, {}, Pass::kBackward, Variant::kBaseline),
                                       make<OtherConvention>);
  correct.component.spec.custom_gradient = [](const Setting&) { return "the specification conjugates it"; };
  return correct;
}

}  // namespace

std::vector<SelftestCase> wrong_in_state_or_kind() {
  return {
      twin("reset_does_nothing", "goes on from where the last run ended", "determinism", make<ResetDoesNothing>),
      twin("reset_forgets_the_age", "returns one part of its state of two", "determinism", make<ResetForgetsTheAge>),
      twin("stops_after_thirty_runs", "works in its first thirty runs alone, at a size that is not timed",
           "determinism", make<StopsAfterThirtyRuns>),
      twin("runs_once", "advances its state in the first run after reset() alone", "carried", make<RunsOnce>),
      long_runs(twin("stops_after_six_runs", "works in the first six runs after reset() alone", "remembers",
                     make<StopsAfterSixRuns>)),
      in_time(twin("short_runs_stop", "the same where a run is too short to be told by its time", "remembers",
                   make<StopsAfterSixRuns>)),
      in_time(
          with_baseline(twin("timed_idles_when_it_goes_on",
                             "the baseline idles in timed runs, which go on from each other", "padded", make<Rotate>),
                        make<IdlesWhenItGoesOn>)),
      twin("reads_complex_late", "reads a complex input in outputs()", "late", make<ReadsComplexLate>),
      twin("reset_clears", "returns to zeros, not to what it was given", "oracle", make<ResetClears>),
      twin("advances_its_input", "advances the given state in place", "input_mutation", make<AdvancesItsInput>),
      twin("conjugated", "complex conjugate of the answer", "oracle", make<Conjugated>),
      twin("conjugates_lazily", "right values in a view that is still to be conjugated", "oracle",
           make<ConjugatesLazily>),
      twin("swaps_planes", "imaginary plane first", "oracle", make<SwapsPlanes>),
      twin("nan_in_one_part", "one imaginary part is NaN", "oracle", make<NanInOnePart>),
      twin("measures_backwards", "a measured time below zero", "oracle", make<MeasuresBackwards>),
      declared("declared_shape", "the specification declares another shape",
               [](OutputSpec& field) { field.shape = shape_of("items, width + 1"); }),
      declared("declared_element", "the specification declares fp64",
               [](OutputSpec& field) { field.element = Element::kDouble; }),
      with_baseline(twin("float_oracle", "the baseline returns fp32 in fp64 mode", "oracle", make<Rotate>),
                    make<FloatOracle>),
      with_baseline(twin("other_convention", "the baseline's complex gradient is conjugated", "gradient",
                         rotate_backward, {}, Pass::kBackward, Variant::kBaseline),
                    make<OtherConvention>),
      twin("depends_on_blocks", "another last bit in blocks", "relation", make<DependsOnBlocks>),
      close_relation("far_in_blocks", "a thousandth apart in blocks", "relation", make<FarInBlocks>),
      twin("depends_on_workers", "another last bit with two workers", "relation", make<DependsOnWorkers>),
      twin("accepts_any_age", "takes a negative age", "refusal", make<AcceptsAnyAge>),
      twin("adds_once", "issues an operator that the run's own outputs do not account for", "proof", make<AddsOnce>),
      specimen("unseen_specimen", "a documented mistake on inputs that hide it", "specimen", "zeros"),
  };
}

std::vector<SelftestCase> correct_in_state_or_kind() {
  return {
      twin("steps_of_a_state", "n steps from a complex state", "", make<Rotate>),
      twin("steps_in_blocks", "the other setting of its relation", "", make<Rotate>, {{"blocked", 1}}),
      twin("complex_backward", "complex and planar gradients", "", rotate_backward, {}, Pass::kBackward),
      twin("complex_backward_of_the_oracle", "complex and planar gradients", "", rotate_backward, {}, Pass::kBackward,
           Variant::kBaseline),
      close_relation("close_in_blocks", "another last bit where the relation allows a tolerance", "",
                     make<DependsOnBlocks>),
      custom_gradient(),
      in_time(twin("timed_state", "timed runs go on, judged ones start afresh", "", make<Rotate>)),
      long_runs(
          twin("long_timed_state", "runs that go on from each other, each with all of its work", "", make<Rotate>)),
      specimen("seen_specimen", "a documented mistake that the comparison rejects", "", "normal"),
  };
}

}  // namespace twinbench::selftest

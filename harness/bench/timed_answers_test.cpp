// Where a variant is said to remember, or to have stopped: just beyond what the rules allow, and not just below.
#include "harness/bench/timed_answers.h"

#include <gtest/gtest.h>

#include "harness/selftest/rotate.h"
#include "harness/selftest/row_scale.h"
#include "harness/timing/processor_time.h"

namespace twinbench {
namespace {

constexpr double kRun_s = 1.5e-3;  // short enough to be judged as quick, long enough for the clock
double times_as_long = 1;          // of a run that has something new before it

void work_until(double end) {
  while (processor_seconds() < end) {
  }
}

struct LongerOnNewContents : selftest::RowScale {
  using RowScale::RowScale;
  void run() override {
    const double start = processor_seconds();
    const bool seen = seen_.defined() && seen_.equal(x_);
    seen_ = x_.clone();
    RowScale::run();
    work_until(start + (seen ? 1 : times_as_long) * kRun_s);
  }
  at::Tensor seen_;
};

struct LongerFromTheStart : selftest::Rotate {
  LongerFromTheStart(const NamedTensors& inputs, const Setting& setting) : Rotate(inputs, setting) {}
  void run() override {
    const double start = processor_seconds();
    Rotate::run();
    work_until(start + (fresh_ ? times_as_long : 1) * kRun_s);
    fresh_ = false;
  }
  void reset() override {
    Rotate::reset();
    fresh_ = true;
  }
  bool fresh_ = true;
};

std::string judged(const Component& component, const Setting& setting) {
  const TimedAnswers answers(component, setting, 1234);
  JudgedVariant variant(Variant::kOptimized, setting.device, answers);
  return variant.judge_after();
}

std::string on_new_contents(double times) {
  times_as_long = times;
  Component component = selftest::row_scale_component(make<LongerOnNewContents>);
  return judged(component, selftest::row_scale_setting(component, 16, 16));
}

std::string from_the_start(double times) {
  times_as_long = times;
  Component component = selftest::rotate_component(make<LongerFromTheStart>);
  return judged(component, selftest::rotate_setting(component));
}

TEST(TimedAnswers, ARunOnNewContentsMayTakeLessThanThreeTimesAsLong) {
  EXPECT_EQ(on_new_contents(2.5), "");
  EXPECT_NE(on_new_contents(3.6).find("that it has not seen"), std::string::npos);
}

TEST(TimedAnswers, ARunThatGoesOnMayTakeMoreThanATenthOfOneThatStartsOver) {
  EXPECT_EQ(from_the_start(8), "");
  EXPECT_NE(from_the_start(12).find("less than a tenth"), std::string::npos);
}

}  // namespace
}  // namespace twinbench

// Time beside operators: measured, and what of it is padding.
#include "harness/bench/operator_share.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <time.h>

namespace twinbench {
namespace {

// So many small operators, and so much processor time beside them.
class Operators final : public Runnable {
 public:
  Operators(int operators, double idle_s) : operators_(operators), idle_s_(idle_s), x_(at::ones({64})) {}
  void run() override {
    for (int i = 0; i < operators_; ++i) x_.mul_(1.0);
    const double start = seconds();
    while (seconds() < start + idle_s_) {
    }
  }
  NamedTensors outputs() override { return {{"x", x_}}; }

 private:
  static double seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  int operators_;
  double idle_s_;
  at::Tensor x_;
};

TEST(OperatorShare, TellsOperatorsFromWhatIsBesideThem) {
  Operators honest(500, 0), padded(500, 0.01);
  const OperatorShare without = operator_share(honest), with = operator_share(padded);
  EXPECT_EQ(without.operators, with.operators);
  EXPECT_GE(with.outside_s(), 0.009);
  EXPECT_GT(with.share(), without.share());
  EXPECT_LT(without.outside_of_one_s(), 1e-5);
}

TEST(OperatorShare, PaddingIsTimeThatASmallCaseDoesNotHave) {
  const OperatorShare small{1e-3, 0.8e-3, 100};  // 2 us beside each
  EXPECT_EQ(padding_of({1, 0.8, 100'000}, small), "") << "the same an operator";
  EXPECT_EQ(padding_of({1, 0.9, 10'000}, small), "") << "a tenth of the time";
  EXPECT_NE(padding_of({1, 0.7, 10'000}, small).find("30 us an operator"), std::string::npos);
  EXPECT_EQ(padding_of({1, 0.7, 10'000}, {}), "") << "nothing to compare with";
}

}  // namespace
}  // namespace twinbench

// What the engines do not ask of sem.lazy_gate: how many H-applies a micro-batch and its recomputation take (C07's work
// balance), on every path; how many iterations which step takes, and that the steps are the recurrence's (C05).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <vector>

#include "kernels/sem/lazy_gate/math.h"
#include "src/registry.h"

namespace twinbench::sem::lazy_gate {
namespace {

constexpr std::int64_t kCalls = 8;  // four micro-batches, each recomputed once

struct Work {
  std::int64_t applies = 0;  // the right side, the gate, an iteration: one H-apply each
  std::int64_t looked = 0, skipped = 0;
  std::int64_t iterations = 0;  // K, of the calls that were solved; 0 where they differ
};

Work work_of(Variant variant, Device device, Options options) {
  const Component& component = find_component("sem.lazy_gate");
  Setting setting;
  setting.input_case = component.spec.cases.front();
  setting.input_case.sizes = {{"calls", kCalls}, {"rows", 3}, {"dim", 24}, {"edges", 168}, {"scales", 3}};
  options["recomputed"] = 1;
  setting.input_case.options = std::move(options);
  setting = completed(component.spec.signature, setting);
  const auto runnable = component.make(variant, device, generate_inputs(component.spec, setting, 3), setting);
  runnable->run();
  const NamedTensors outputs = runnable->outputs();
  const auto of = [&](const char* name) { return outputs[name].cpu().to(at::kLong).contiguous(); };
  const at::Tensor took = of("iterations").select(0, 0), skipped = of("skipped");
  Work work{kCalls, of("gate_evaluations").sum().item<std::int64_t>(), skipped.sum().item<std::int64_t>(), 0};
  work.applies += work.looked + took.sum().item<std::int64_t>();
  const at::Tensor solved = took.masked_select(skipped.eq(0));
  if (solved.min().item<std::int64_t>() == solved.max().item<std::int64_t>())
    work.iterations = solved.min().item<std::int64_t>();
  return work;
}

TEST(LazyGate, WorkIsBalancedAsDocumented) {
  const std::int64_t batches = kCalls / 2;
  for (const auto& [variant, device] : {std::pair{Variant::kBaseline, Device()},
                                        {Variant::kOptimized, Device()},
                                        {Variant::kOptimized, Device::simt()}}) {
    const bool gated = variant == Variant::kOptimized;
    const Work always = work_of(variant, device, {}), keyed = work_of(variant, device, {{"gate_policy", 1}}),
               off = work_of(variant, device, {{"lazy_cg", 0}});
    const std::int64_t k = off.iterations;
    ASSERT_GT(k, 4);
    EXPECT_EQ(off.applies, batches * 2 * (1 + k)) << "2 (1 + K)";
    EXPECT_EQ(off.looked + off.skipped, 0);
    EXPECT_EQ(always.iterations, k);
    EXPECT_EQ(keyed.iterations, k);
    EXPECT_EQ(always.skipped, gated ? batches : 0) << "50.0 %";
    EXPECT_EQ(keyed.skipped, gated ? batches : 0);
    EXPECT_EQ(always.looked, gated ? kCalls - 1 : 0) << "calls with an entry: all but the first ever";
    EXPECT_EQ(keyed.looked, gated ? batches : 0) << "with the call's own";
    EXPECT_EQ(always.applies, gated ? batches * (2 + k + 2) - 1 : off.applies) << "(2 + K) + 2, one gate fewer";
    EXPECT_EQ(keyed.applies, gated ? batches * (1 + k + 2) : off.applies) << "(1 + K) + 2";
  }
}

// C05's table of iterations to 1e-6, at the documented width and graph: within one, from dt 0.5 on within two.
TEST(LazyGate, LongerStepsTakeMoreIterations) {
  struct Row {
    double dt;
    std::int64_t iterations, off;
  };
  for (const auto& [dt, iterations, off] : {Row{0.01, 5, 1}, Row{0.1, 13, 1}, Row{0.2, 21, 1}, Row{0.5, 42, 2}}) {
    const Component& component = find_component("sem.lazy_gate");
    Setting setting;
    setting.input_case = component.spec.cases.front();
    setting.input_case.sizes = {{"calls", 1}, {"rows", 16}, {"dim", 256}, {"edges", 7168}, {"scales", 3}};
    setting.input_case.options = {{"dt", dt}, {"tolerance", 1e-6}, {"lazy_cg", 0}};
    setting = completed(component.spec.signature, setting);
    NamedTensors inputs = generate_inputs(component.spec, setting, 3);
    inputs["mix"].zero_();  // all scales alike
    const auto runnable = component.make(Variant::kOptimized, Device(), inputs, setting);
    runnable->run();
    EXPECT_NEAR(runnable->outputs()["iterations"].select(0, 0).max().item<std::int64_t>(), iterations, off) << dt;
  }
}

// C05's example: its table, and what must hold of every step.
TEST(LazyGate, StepsAreTheWorkedExamples) {
  using Vector = std::array<std::complex<double>, 4>;
  constexpr double kH[4][4] = {{1.5, -1, 0, -0.5}, {-1, 3, -2, 0}, {0, -2, 3.5, -1.5}, {-0.5, 0, -1.5, 2}};
  const auto operated = [&](const Vector& v) {
    Vector result = v;
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 4; ++j) result[i] += std::complex<double>(0, 0.25) * kH[i][j] * v[j];
    return result;
  };
  const auto inner = [](const Vector& a, const Vector& b) {
    double sum = 0;
    for (std::size_t i = 0; i < 4; ++i) sum += (std::conj(a[i]) * b[i]).real();
    return sum;
  };
  const Vector b = {{{0.90625, -0.34375}, {0.375, 0.5}, {-0.65625, 0.53125}, {0.125, -0.4375}}};
  struct Step {
    double alpha, t, residual;
  };
  constexpr Step kSteps[] = {{1.00000000, 0.55718316, 7.464470e-01}, {0.64218521, 0.33779622, 4.338368e-01},
                             {0.65530345, 0.38837573, 2.703662e-01}, {0.62787824, 0.04261267, 5.581125e-02},
                             {0.93644557, 0.12959609, 2.009175e-02}, {0.87843244, 0.09235327, 6.105818e-03}};
  const StopRule rule{5e-7f, 0, 40};
  RowState row;
  EXPECT_EQ(begin(row, rule, 2.25f, 2.25f), Start::kZero);
  Vector r = b, p = b, x = {};
  std::vector<Vector> residuals = {r};
  for (const Step& step : kSteps) {
    const Vector q = operated(p);
    EXPECT_NEAR(row.length, step.alpha, 2e-6);
    EXPECT_NEAR(row.length, inner(r, r) / inner(p, q), 2e-6) << "the quotient that the recurrence need not form";
    EXPECT_GT(row.length, 0);
    EXPECT_LE(row.length, 1);
    for (std::size_t i = 0; i < 4; ++i) {
      x[i] += static_cast<double>(row.length) * p[i];
      r[i] -= static_cast<double>(row.length) * q[i];
    }
    for (const Vector& before : residuals)
      EXPECT_LE(std::abs(inner(before, r)), 1e-5 * std::sqrt(inner(before, before) * inner(r, r))) << "orthogonal";
    residuals.push_back(r);
    const double t = go_on(row, rule, static_cast<float>(inner(r, r)));
    EXPECT_NEAR(t, step.t, 2e-6);
    EXPECT_NEAR(std::sqrt(inner(r, r) / 2.25), step.residual, 2e-6);
    for (std::size_t i = 0; i < 4; ++i) p[i] = r[i] - t * p[i];
  }
  const Vector q = operated(p);
  for (std::size_t i = 0; i < 4; ++i) r[i] -= static_cast<double>(row.length) * q[i];
  EXPECT_LE(std::sqrt(inner(r, r) / 2.25), 1e-6) << "2 D - 1 iterations are exact up to rounding";
}

}  // namespace
}  // namespace twinbench::sem::lazy_gate

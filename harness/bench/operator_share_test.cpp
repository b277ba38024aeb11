// Time beside operators: measured, and what of it is padding.
#include "harness/bench/operator_share.h"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "harness/compare/inputs.h"
#include "harness/instructions/counted_cells.h"
#include "harness/runner/components_in_turn.h"
#include "harness/timing/processor_time.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

// So many small operators, and so much processor time beside them.
class Operators final : public Runnable {
 public:
  Operators(int operators, double idle_s) : operators_(operators), idle_s_(idle_s), x_(at::ones({64})) {}
  void run() override {
    for (int i = 0; i < operators_; ++i) x_.mul_(1.0);
    const double start = thread_seconds();
    while (thread_seconds() < start + idle_s_) {
    }
  }
  NamedTensors outputs() override { return {{"x", x_}}; }

 private:
  int operators_;
  double idle_s_;
  at::Tensor x_;
};

TEST(OperatorShare, TellsOperatorsFromWhatIsBesideThem) {
  Operators honest(500, 0), padded(500, 0.01);
  const OperatorShare without = operator_share(honest), with = operator_share(padded);
  EXPECT_EQ(without.operators, with.operators);
  EXPECT_GE(with.beside_s(), 0.009);
  EXPECT_GT(with.share(), without.share());
  EXPECT_LT(without.beside_one_s(), 1e-5);
}

// A result of 64 MiB, given back beside every operator.
class LargeResults final : public Runnable {
 public:
  void run() override {
    for (int i = 0; i < 8; ++i) x_ = at::zeros({1 << 24});
  }
  NamedTensors outputs() override { return {{"x", x_}}; }

 private:
  at::Tensor x_;
};

// One operator that makes a tensor of the factor for each of a list, and gives it back.
class ManyReleases final : public Runnable {
 public:
  ManyReleases() : list_(at::ones({8 * 10'000}).chunk(10'000)) {}
  void run() override { at::_foreach_mul_(list_, 1.0); }
  NamedTensors outputs() override { return {{"first", list_.front()}}; }

 private:
  std::vector<at::Tensor> list_;
};

TEST(OperatorShare, AnUnwatchedRunReadsNoClock) {
  ManyReleases many;
  const OperatorShare share = operator_share(many);
  EXPECT_LT(share.unwatched_s, share.watched_s);  // else 1.5 of it
}

TEST(OperatorShare, ATimeBesideThemIsNeverBelowNothing) {
  const OperatorShare clocks_disagree{1, 1.5, 1, 3, 1};
  EXPECT_EQ(clocks_disagree.share(), 0);
  EXPECT_EQ(clocks_disagree.beside_one_s(), 0);
}

TEST(OperatorShare, MemoryThatIsGivenBackIsTheOperators) {
  c10::Allocator* const before = c10::GetCPUAllocator();
  LargeResults large;
  EXPECT_LT(operator_share(large).beside_one_s(), 1e-4);  // else 5e-3
  EXPECT_EQ(c10::GetCPUAllocator(), before);
}

TEST(OperatorShare, PaddingIsTimeThatASmallCaseDoesNotHave) {
  const OperatorShare small{1e-3, 0.8e-3, 1e-3, 100, 1000};  // 2 us beside each
  const auto padding = [&](double inside_s, double unwatched_s, std::int64_t operators, double work, bool host) {
    return padding_of({1, inside_s, unwatched_s, operators, work}, small, host);
  };
  EXPECT_EQ(padding(0.8, 1, 100'000, 1e6, false), "") << "the same an operator";
  EXPECT_EQ(padding(0.61, 1, 100'000, 1e6, false), "") << "0.19 of the time more than as many would take";
  EXPECT_NE(padding(0.59, 1, 100'000, 1e6, false).find("4.1 us an operator; in a small case that is 2"),
            std::string::npos);
  EXPECT_EQ(padding(0.86, 1, 10, 1e6, false), "") << "a seventh of the time";
  EXPECT_EQ(padding(0.7, 1, 10'000, 2e6, true), "") << "what a loop of the host takes a byte";
  EXPECT_NE(padding(0.7, 1, 10'000, 5e5, true), "");
  EXPECT_NE(padding(0.9, 1.5, 100'000, 1e6, false).find("where its operators are watched"), std::string::npos);
  EXPECT_NE(padding_of({0.01, 0.009, 0.02, 1000, 1e4}, small, false).find("are watched"), std::string::npos);
  EXPECT_EQ(padding_of({1e-3, 0.9e-3, 2e-3, 100, 1e4}, small, false), "") << "a millisecond may be anything";
}

TEST(OperatorShare, WithoutASmallCaseMostOfTheTimeBesideOperatorsIsPaddingUnlessDeclared) {
  EXPECT_NE(padding_of({1, 0.34, 1, 100'000, 1e6}, {}, false).find("no host_work is declared"), std::string::npos);
  EXPECT_EQ(padding_of({1, 0.34, 1, 100'000, 1e6}, {}, true), "");
  EXPECT_EQ(padding_of({1, 0.36, 1, 100'000, 1e6}, {}, false), "");
  EXPECT_EQ(padding_of({1, 0.25, 1, 1'000'000, 1e6}, {}, false), "") << "short ones";
}

// Larger small cases, which nobody counts, would hide what is slow at every size but the counted ones.
TEST(OperatorShare, TheSmallCaseIsOneWhoseInstructionsAreCounted) {
  Component component;
  ComponentSpec& spec = component.spec;
  spec.dtypes = {Dtype::kFp32, Dtype::kBf16};
  spec.signature.options = {switch_option("gate", false, "")};
  spec.cost = [](const Setting& setting) { return Cost{static_cast<double>(setting.size("rows")), 0}; };
  const auto add = [&](const std::string& name, std::int64_t rows, Options options, Pass pass = Pass::kForward) {
    Case one;
    one.name = name, one.sizes = {{"rows", rows}}, one.options = std::move(options), one.pass = pass;
    spec.cases.push_back(one);
  };
  add("plain", 1000, {}), add("gated", 10, {{"gate", 1}}), add("uncounted", 200'000, {});
  add("backward", 2000, {}, Pass::kBackward), add("timed", 1'000'000, {}), add("timed_gated", 1'000'000, {{"gate", 1}});
  spec.cases[4].timed = spec.cases[5].timed = true;
  using Names = std::vector<std::string>;
  const auto small = [&](std::size_t timed, Dtype dtype, bool host = false) {
    Names names;
    for (const Case* one : small_cases_for({&component, Variant::kBaseline, Device(), dtype, &spec.cases[timed]}, host))
      names.push_back(one->name);
    return names;
  };
  EXPECT_EQ(small(4, Dtype::kFp32), Names{"plain"});
  EXPECT_EQ(small(5, Dtype::kFp32), Names{"gated"});
  EXPECT_EQ(small(5, Dtype::kBf16), Names{"plain"}) << "the one that is counted in another dtype";
  EXPECT_EQ(small(4, Dtype::kFp32, true), (Names{"plain", "uncounted"})) << "what a byte takes is told by more of them";
  EXPECT_EQ(small(5, Dtype::kFp32, true), Names{"gated"}) << "of another way it is something else";
  spec.cases[0].pass = spec.cases[1].pass = spec.cases[2].pass = Pass::kBackward;
  EXPECT_EQ(small(4, Dtype::kFp32), Names{});
}

// What is shipped is none, at any timed size: of one small component in each revision, as many cells as ten seconds
// allow, of all in ci/slow; bench asks it of all that it times.
TEST(OperatorShare, NothingShippedIsPadded) {
  const bool every = std::getenv("TWINBENCH_EVERY") != nullptr;
  constexpr double kMostWork = 1e8, kSeconds = 10;
  const auto is_chosen = [&](const Cell& cell) {
    return cell.input_case->timed && (every || work_of(cell) <= kMostWork);
  };
  const auto chosen = components_in_turn(1, [&](const Component& component) {
    return std::ranges::any_of(component.spec.cases, [&](const Case& one) {
      return is_chosen({&component, Variant::kBaseline, Device(), component.spec.dtypes.front(), &one});
    });
  });
  const double start = thread_seconds();
  int looked_at = 0;
  for (const Cell& cell : all_cells()) {
    if (!is_chosen(cell) || !cell.device.is_cpu() || cell.variant == Variant::kOptimized) continue;
    if (std::ranges::find(chosen, cell.component) == chosen.end()) continue;
    if (!every && thread_seconds() - start > kSeconds) {
      std::cout << "left out after " << kSeconds << " s: " << cell.name() << std::endl;
      continue;
    }
    ++looked_at;
    const Setting setting = cell.setting();
    const NamedTensors inputs =
        placed_inputs(generated_inputs(cell.component->spec, setting, 1234), setting.dtype, setting.device);
    const auto runnable = cell.component->make(cell.variant, inputs, setting);
    const BesideOperators beside = beside_operators(cell, *runnable, 1234);
    std::cout << cell.name() << " " << to_json(beside).dump() << std::endl;
    EXPECT_EQ(beside.padding(), "") << cell.name();
  }
  EXPECT_GT(looked_at, 0);
}

}  // namespace
}  // namespace twinbench

// The engine's own rules: which checks run, what an exception becomes, outputs that are missing or undeclared, the
// record row. What each check catches is proven in harness/selftest.
#include "harness/parity/parity.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/compare/inputs.h"
#include "harness/parity/reference.h"
#include "harness/parity/test_component.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

// y = 2 x, by addition or by multiplication; options make it misbehave.
class Doubled : public Runnable {
 public:
  Doubled(const NamedTensors& inputs, const Setting& setting) : x_(inputs["x"]), setting_(setting) {}
  void run() override {
    if (setting_.on("throws")) throw Error(ErrorKind::kOutOfMemory, "workspace", "1 TB", "use a smaller case");
    y_ = x_ + x_;
  }
  NamedTensors outputs() override {
    NamedTensors outputs;
    if (!setting_.on("missing")) outputs.set("y", y_);
    if (setting_.on("undeclared")) outputs.set("z", y_);
    return outputs;
  }

 private:
  at::Tensor x_, y_;
  Setting setting_;
};

class Baseline : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting) : x_(inputs["x"]), rounds_(setting.on("rounds")) {}
  void run() override {
    y_ = x_ * 2;
    if (rounds_ && y_.scalar_type() == at::kFloat) y_ = y_.to(at::kBFloat16).to(at::kFloat);
  }
  NamedTensors outputs() override { return {{"y", y_}}; }

 private:
  at::Tensor x_, y_;
  const bool rounds_;
};

Component doubled() {
  return test_component<Baseline, Doubled>(
      "doubled",
      {
          .sizes = {{"n", 0}},
          .options = {switch_option("throws", false, "run() throws"), switch_option("missing", false, "y is left out"),
                      switch_option("undeclared", false, "z is added"),
                      switch_option("rounds", false, "the baseline rounds to bf16, its oracle does not")},
          .inputs = {data("x", "n", from_case(1))},
          .outputs = {output("y", "n", {}).batch(std::nullopt)},
      });
}

Setting sized(std::int64_t n, Options options = {}) {
  Setting setting;
  setting.input_case.name = "only";
  setting.input_case.sizes = {{"n", n}};
  setting.input_case.options = std::move(options);
  return setting;
}

const CheckResult& find(const std::vector<CheckResult>& results, const std::string& check) {
  for (const auto& result : results)
    if (result.check == check) return result;
  throw Error(ErrorKind::kUnknownName, "check", check, "it gave no row");
}

std::set<std::string> names_of(const std::vector<CheckResult>& results) {
  std::set<std::string> names;
  for (const auto& result : results) names.insert(result.check);
  return names;
}

TEST(Parity, RunsWhatAppliesAndPasses) {
  const auto results = check_cell(doubled(), Variant::kOptimized, sized(50), 1);
  EXPECT_EQ(names_of(results), (std::set<std::string>{"oracle", "vacuity", "determinism", "input_mutation",
                                                      "guard_bands", "non_contiguous", "stale", "global_state",
                                                      "instances", "late", "outlives", "sensitivity", "threads"}));
  for (const auto& result : results)
    EXPECT_EQ(result.verdict, CheckVerdict::kPass) << result.check << ": " << result.reason;
}

TEST(Parity, OnlyTheChecksAskedFor) {
  ParityOptions options;
  options.checks = {"determinism"};
  EXPECT_EQ(names_of(check_cell(doubled(), Variant::kOptimized, sized(50), 1, options)),
            (std::set<std::string>{"determinism"}));
  options.checks = {"determinsm"};
  EXPECT_THROW(check_cell(doubled(), Variant::kOptimized, sized(50), 1, options), Error);
}

// Wrong with one number of threads alone.
class WrongWith13 final : public Doubled {
 public:
  using Doubled::Doubled;
  NamedTensors outputs() override {
    NamedTensors all = Doubled::outputs();
    if (at::get_num_threads() == 13) all["y"].add_(1);
    return all;
  }
};

TEST(Parity, RevisionsTakeTurnsWithTheNumbersOfThreads) {
  for (const bool all : {true, false}) {
    ParityOptions options;
    options.all_thread_counts = all;
    std::set<int> drawn;
    for (int revision = 0; revision < 400; ++revision) {
      options.sample = "r" + std::to_string(revision);
      const auto counts = drawn_thread_counts("cell", options, 1);
      EXPECT_EQ(counts, drawn_thread_counts("cell", options, 1)) << "a sample is repeated";
      EXPECT_EQ(counts.size(), all ? 3u : 1u);
      drawn.insert(counts.begin(), counts.end());
    }
    EXPECT_EQ(drawn.size(), 21u) << "2 to 18, 32, 64, 128 and 256";
  }
  Component component = doubled();
  component.optimized = make<WrongWith13>;
  ParityOptions options;
  options.checks = {"threads"};
  std::string reason;
  for (int revision = 0; revision < 100 && reason.empty(); ++revision) {
    options.sample = "r" + std::to_string(revision);
    reason = find(check_cell(component, Variant::kOptimized, sized(50), 1, options), "threads").reason;
  }
  EXPECT_EQ(reason.rfind("with 13 threads", 0), 0u) << "in none of a hundred revisions: " << reason;
}

// In tier quick a case that is not the first takes such a rule in one of so many revisions, its variants together.
TEST(Parity, CasesTakeTurnsWithTheCostlyRules) {
  Component component = doubled();
  const Setting first = sized(50);
  Setting second = first;
  second.input_case.name = "second";
  component.spec.cases = {first.input_case, second.input_case};
  ParityOptions options;
  options.turns = 2;
  std::map<std::string, int> taken, by_rows;
  constexpr int kRevisions = 64;
  for (int revision = 0; revision < kRevisions; ++revision) {
    options.sample = "r" + std::to_string(revision);
    for (const char* const rule : {"threads", "instances", "late"}) {
      EXPECT_TRUE(takes_turn(rule, component, first, options));
      taken[rule] += takes_turn(rule, component, second, options);
    }
    for (const auto& result : check_cell(component, Variant::kOptimized, second, 1, options)) {
      by_rows[result.check] += result.verdict == CheckVerdict::kPass;
      if (result.verdict != CheckVerdict::kSkip) continue;
      EXPECT_NE(result.reason.find("--sample"), std::string::npos) << result.reason;
    }
  }
  for (const char* const rule : {"threads", "instances", "late"}) {
    EXPECT_GT(taken[rule], kRevisions / 4) << rule;
    EXPECT_LT(taken[rule], 3 * kRevisions / 4) << rule;
    EXPECT_EQ(by_rows[rule], taken[rule]) << rule;
  }
  EXPECT_EQ(by_rows["sensitivity"], by_rows["instances"]);
  EXPECT_EQ(by_rows["stale"], kRevisions);
  options.turns = 1;
  EXPECT_TRUE(takes_turn("threads", component, second, options));
}

TEST(Parity, LargeCasesSayThatTheySkip) {
  ParityOptions options;
  options.thorough_elements = 49;
  const auto results = check_cell(doubled(), Variant::kOptimized, sized(50), 1, options);
  EXPECT_EQ(find(results, "oracle").verdict, CheckVerdict::kPass);
  EXPECT_EQ(find(results, "guard_bands").verdict, CheckVerdict::kSkip);
  EXPECT_NE(find(results, "guard_bands").reason, "");
}

class WrongWithMany final : public Doubled {
 public:
  using Doubled::Doubled;
  NamedTensors outputs() override {
    NamedTensors all = Doubled::outputs();
    if (at::get_num_threads() > 8) all["y"].add_(1);
    return all;
  }
};

// In a small one there is no work for so many pieces.
TEST(Parity, ALargeCaseIsJudgedWithManyThreads) {
  Component component = doubled();
  component.optimized = make<WrongWithMany>;
  ParityOptions options;
  options.thorough_elements = 49;
  const CheckResult found = find(check_cell(component, Variant::kOptimized, sized(50), 1, options), "threads");
  EXPECT_EQ(found.verdict, CheckVerdict::kFail);
  EXPECT_EQ(found.reason.rfind("with ", 0), 0u) << found.reason;
  const auto honest = check_cell(doubled(), Variant::kOptimized, sized(50), 1, options);
  EXPECT_EQ(find(honest, "threads").verdict, CheckVerdict::kPass);
}

TEST(Parity, AnExceptionIsAnErrorRow) {
  const auto results = check_cell(doubled(), Variant::kOptimized, sized(50, {{"throws", 1}}), 1);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].verdict, CheckVerdict::kError);
  EXPECT_NE(results[0].reason.find("out_of_memory"), std::string::npos) << results[0].reason;
}

TEST(Parity, MissingAndUndeclaredOutputsFail) {
  const auto missing = check_cell(doubled(), Variant::kOptimized, sized(50, {{"missing", 1}}), 1);
  EXPECT_NE(find(missing, "oracle").reason.find("'y' is missing"), std::string::npos);
  const auto undeclared = check_cell(doubled(), Variant::kOptimized, sized(50, {{"undeclared", 1}}), 1);
  EXPECT_NE(find(undeclared, "oracle").reason.find("'z' is not declared"), std::string::npos);
}

// A baseline that takes bf16 for fp32 is found where there are numbers enough: of three, chance may make all bf16's.
TEST(Parity, FewNumbersTellNoModesApart) {
  Component component = doubled();
  component.spec.signature.outputs.front().tolerance.fp32 = {3e-2, 3e-2};
  const auto precision = [&](std::int64_t numbers, double rounds) {
    const ParityOptions options{.checks = {"precision"}};
    const auto rows = check_cell(component, Variant::kBaseline, sized(numbers, {{"rounds", rounds}}), 1, options);
    return find(rows, "precision").verdict;
  };
  for (const std::int64_t numbers : {1, 3, 4, 40}) EXPECT_EQ(precision(numbers, 0), CheckVerdict::kPass) << numbers;
  for (const std::int64_t numbers : {0, 1, 3}) EXPECT_EQ(precision(numbers, 1), CheckVerdict::kSkip) << numbers;
  for (const std::int64_t numbers : {4, 40}) EXPECT_EQ(precision(numbers, 1), CheckVerdict::kFail) << numbers;
}

// Thousands, which bf16 has, hide what it does to the ones beside them from a bound that goes by the largest number.
TEST(Parity, NumbersOfBf16TellNoModesApart) {
  Component component = doubled();
  auto& tolerance = component.spec.signature.outputs.front().tolerance;
  tolerance.fp32 = {0, 8};
  tolerance.iterative = true;
  const ParityOptions options{.checks = {"precision"}};
  Setting setting = sized(40);
  for (const auto& [distribution, verdict] :
       {std::pair{"adversarial", CheckVerdict::kSkip}, std::pair{"normal", CheckVerdict::kFail}}) {
    setting.input_case.distribution = distribution;
    const auto rows = check_cell(component, Variant::kBaseline, setting, 1, options);
    EXPECT_EQ(find(rows, "precision").verdict, verdict) << distribution;
  }
}

TEST(Parity, BoundFactors) {
  Component component = doubled();
  auto& bound = component.spec.signature.outputs[0].tolerance.fp32;
  bound = {1e-7, 0};
  const NamedTensors inputs = generated_inputs(component.spec, sized(50), 3);
  const NamedTensors near = {{"y", inputs["x"] * 2 * (1 + 2.4e-7)}};  // two units in the last place
  const auto reason = [&] { return judge_outputs(component, sized(50), inputs, near).reason; };
  EXPECT_NE(reason().find("distance"), std::string::npos) << reason();
  component.spec.bound_factor = [](const std::string& output, const NamedTensors& given, const Setting& setting) {
    return output == "y" && given["x"].numel() == setting.size("n") ? 10.0 : 0.0;
  };
  EXPECT_EQ(reason().find("distance"), std::string::npos) << reason();
  for (const double factor : {0.0, -1.0, std::nan(""), 1e-4, 1e7}) {
    static double given;
    given = factor;
    component.spec.bound_factor = [](const std::string&, const NamedTensors&, const Setting&) { return given; };
    EXPECT_NE(reason().find("invalid case: bound_factor of output 'y'"), std::string::npos) << reason();
  }
}

TEST(Parity, DeclaredShapesNameWhatIsExpected) {
  Component component = doubled();
  component.spec.signature.outputs[0].shape = shape_of("n, 2");
  const NamedTensors inputs = generated_inputs(component.spec, sized(50), 3);
  CheckResult result = judge_outputs(component, sized(50), inputs, {{"y", inputs["x"] * 2}});
  for (const char* part : {"'y'", "[50]", "[50, 2]", "[n, 2]"})
    EXPECT_NE(result.reason.find(part), std::string::npos) << part << " is not in: " << result.reason;
  component.spec.signature.outputs[0].shape = shape_of("any");
  result = judge_outputs(component, sized(50), inputs, {{"y", inputs["x"] * 2}});
  EXPECT_EQ(result.verdict, CheckVerdict::kPass) << result.reason;
}

TEST(Parity, EveryNumericMode) {
  Component component = doubled();
  component.spec.dtypes = {Dtype::kFp32, Dtype::kTf32, Dtype::kFp16};
  for (const Dtype dtype : component.spec.dtypes) {
    Setting setting = sized(50);
    setting.dtype = dtype;
    const auto results = check_cell(component, Variant::kOptimized, setting, 1);
    EXPECT_EQ(results.size(), 13u);
    for (const auto& result : results) {
      EXPECT_EQ(result.verdict, CheckVerdict::kPass)
          << to_string(dtype) << " " << result.check << ": " << result.reason;
      EXPECT_NO_THROW((void)to_json("test.doubled/optimized/cpu/" + to_string(dtype) + "/only", result).dump());
    }
  }
}

TEST(Parity, DeclaredDoubleInputsAreTaken) {
  Component component = doubled();
  component.spec.signature.inputs.push_back(data("wide", "n", from_case(2)).of(Element::kDouble));
  EXPECT_EQ(generated_inputs(component.spec, sized(5), 1)["wide"].scalar_type(), at::kDouble);
  component.spec.signature.inputs.back().element = Element::kFloating;
  component.spec.finish_inputs = [](NamedTensors& inputs, const Setting&, std::uint64_t) {
    inputs.set("wide", inputs["wide"].to(at::kDouble));
  };
  EXPECT_THROW((void)generated_inputs(component.spec, sized(5), 1), Error);
}

TEST(Parity, JudgesOutputsFromElsewhere) {
  const Component component = doubled();
  const NamedTensors inputs = generated_inputs(component.spec, sized(50), 3);
  EXPECT_EQ(judge_outputs(component, sized(50), inputs, {{"y", inputs["x"] * 2}}).verdict, CheckVerdict::kPass);
  EXPECT_EQ(judge_outputs(component, sized(50), inputs, {{"y", inputs["x"] * 2.001}}).verdict, CheckVerdict::kFail);
}

TEST(Parity, RecordRowIsStrictJson) {
  const Component component = doubled();
  const NamedTensors inputs = generated_inputs(component.spec, sized(50), 3);
  const auto row = to_json("a/b/c/d/e", judge_outputs(component, sized(50), inputs, {{"y", inputs["x"] / 0}}));
  EXPECT_EQ(row["verdict"], "fail");
  EXPECT_TRUE(row["outputs"][0]["worst_ratio"].is_null());
  EXPECT_TRUE(row["vacuity"].is_null());
  EXPECT_NO_THROW((void)row.dump());
}

}  // namespace
}  // namespace twinbench

// Scenario files that are wrong: each refusal names the file, the entry and the remedy. And those of the project load.
#include "scenarios/runner/config.h"

#include <gtest/gtest.h>

#include "scenarios/runner/fake_run.h"
#include "scenarios/runner/judge.h"
#include "scenarios/runner/select.h"

namespace twinbench::fake {
namespace {

const std::string kGood =
    scenario("growth", "windows: 6\nsteps_per_window: 3",
             {"measure: baseline.per_window.allocations, at_least: 1",
              "measure: optimized.growth.held_bytes, equals: 0", "measure: optimized.growth.dispatches, equals: 0"});

// kGood with one text replaced by another.
std::string changed(const std::string& from, const std::string& to) {
  auto text = kGood;
  const auto place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

// A scenario of kind speed with one criterion more, and one of kind curve_parity.
std::string speed_with(const std::string& criterion) {
  return scenario(
      "speed", "pairs: 8\nseconds: 1",
      {"measure: baseline.scalar_reads, at_least: 1", "measure: optimized.non_finite, equals: 0",
       "measure: parity.worst_ratio, at_most: 1", "measure: speedup.lower, at_least: 1", "measure: " + criterion});
}

std::string curves(const std::string& tolerance, const std::string& travel) {
  return scenario("curve_parity", "steps: 4\ncurves: [energy]\n" + tolerance,
                  {"measure: baseline.travel, " + travel, "measure: optimized.worst_ratio, at_most: 1"});
}

struct Wrong {
  const char* what;
  std::string text;
  ErrorKind kind;
  std::vector<std::string> message;  // parts of it, the file's name aside
};

class RefusedFile : public testing::TestWithParam<Wrong> {};

TEST_P(RefusedFile, NamesFileEntryAndRemedy) {
  const auto& wrong = GetParam();
  try {
    read(wrong.text);
    FAIL() << "it was read";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.kind(), wrong.kind) << message;
    EXPECT_NE(message.find("planted_"), std::string::npos) << message;
    for (const auto& part : wrong.message) EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Scenario, RefusedFile,
    testing::Values(
        Wrong{"kind",
              changed("experiment: growth", "experiment: grwoth"),
              ErrorKind::kUnknownName,
              {"grwoth", "speed", "sweep", "did you mean 'growth'"}},
        Wrong{"run", changed("energy_flow.fake", "energy_flow.fqke"), ErrorKind::kUnknownName, {"'energy_flow.fake'"}},
        Wrong{"key",
              changed("windows: 6", "windows: 6\nwarm_up_window: 1"),
              ErrorKind::kUnknownName,
              {"warm_up_window", "did you mean 'warm_up_windows'"}},
        Wrong{"key_of_another_kind", changed("windows: 6", "windows: 6\npairs: 8"), ErrorKind::kUnknownName, {"pairs"}},
        Wrong{"missing_key", changed("windows: 6\n", ""), ErrorKind::kBadArgument, {"windows", "it is missing"}},
        Wrong{"key_twice", changed("windows: 6", "windows: 6\nwindows: 7"), ErrorKind::kBadArgument, {"windows"}},
        Wrong{"range", changed("windows: 6", "windows: 3"), ErrorKind::kOutOfRange, {"windows", "4 to 100000"}},
        Wrong{"type", changed("windows: 6", "windows: six"), ErrorKind::kBadArgument, {"windows", "whole number"}},
        Wrong{"two_documents",
              changed("windows: 6", "windows: 6\n---\nwindows: 7"),
              ErrorKind::kBadArgument,
              {"2 documents"}},
        Wrong{"list", changed("windows: 6", "windows: [6]"), ErrorKind::kBadArgument, {"windows", "a list"}},
        Wrong{"check",
              changed("windows: 6", "windows: 4\nwarm_up_windows: 3"),
              ErrorKind::kOutOfRange,
              {"windows", "two more than warm_up_windows"}},
        Wrong{"source_form",
              changed("energy_flow SC21", "energy_flow 21"),
              ErrorKind::kOutOfRange,
              {"source", "energy_flow SC21"}},
        Wrong{"source_beyond_the_last",
              changed("energy_flow SC21", "energy_flow SC37"),
              ErrorKind::kOutOfRange,
              {"source", "SC01 to SC36"}},
        Wrong{"source_of_three_digits",
              changed("energy_flow SC21", "energy_flow SC999"),
              ErrorKind::kOutOfRange,
              {"source", "SC999", "SC01 to SC36"}},
        Wrong{"source_before_the_first",
              changed("energy_flow SC21", "energy_flow SC00"),
              ErrorKind::kOutOfRange,
              {"source", "SC01 to SC36"}},
        Wrong{"source_numbered_as_elsewhere",
              changed("energy_flow SC21", "energy_flow S4"),
              ErrorKind::kOutOfRange,
              {"source", "SC01 to SC36"}},
        Wrong{"null", changed("windows: 6", "windows: ~"), ErrorKind::kBadArgument, {"windows", "'null'"}},
        Wrong{"null_list",
              scenario("curve_parity", "steps: 4\ncurves: ~\nrelative: 0.1\nabsolute: 1e-6",
                       {"measure: baseline.travel, at_least: 10", "measure: optimized.worst_ratio, at_most: 1"}),
              ErrorKind::kBadArgument,
              {"curves", "'null'", "give a list"}},
        Wrong{"no_kind",
              changed("experiment: growth\n", ""),
              ErrorKind::kBadArgument,
              {"experiment", "it is missing", "growth, "}},
        Wrong{"no_run", changed("run: energy_flow.fake\n", ""), ErrorKind::kBadArgument, {"run", "energy_flow.fake, "}},
        Wrong{"source_of_another", changed("energy_flow SC21", "sem S4"), ErrorKind::kOutOfRange, {"another pipeline"}},
        Wrong{"tier", changed("tier: smoke", "tier: smok"), ErrorKind::kUnknownName, {"did you mean 'smoke'"}},
        Wrong{"device",
              changed("tier: smoke", "tier: smoke\ndevice: cud"),
              ErrorKind::kUnknownName,
              {"device", "did you mean 'cuda'"}},
        Wrong{"dtype", changed("dtype: fp32", "dtype: fp64"), ErrorKind::kUnknownName, {"fp64", "bf16"}},
        Wrong{
            "half", changed("shows: {baseline: the sin, ", "shows: {"), ErrorKind::kBadArgument, {"shows", "baseline"}},
        Wrong{"size", changed("{items: 8}", "{itmes: 8}"), ErrorKind::kUnknownName, {"sizes", "did you mean 'items'"}},
        Wrong{"size_range", changed("{items: 8}", "{items: -1}"), ErrorKind::kOutOfRange, {"sizes: items"}},
        Wrong{
            "option", changed("sizes:", "options: {noise: 1}\nsizes:"), ErrorKind::kUnknownName, {"options", "noise"}},
        Wrong{"measure",
              changed("optimized.growth.held_bytes", "optimized.grwth.held_bytes"),
              ErrorKind::kUnknownName,
              {"criteria[1]", "measures no such thing"}},
        Wrong{"family_as_a_whole",
              changed("baseline.per_window.allocations", "baseline.per_window.*"),
              ErrorKind::kUnknownName,
              {"criteria[0]", "'*' stands for names"}},
        Wrong{"required_criterion",
              changed("optimized.growth.dispatches", "optimized.growth.copies"),
              ErrorKind::kOutOfRange,
              {"optimized.growth.dispatches is not judged"}},
        Wrong{"no_baseline_half",
              changed("baseline.per_window.allocations", "optimized.per_window.allocations"),
              ErrorKind::kOutOfRange,
              {"what the baseline shows is not judged"}},
        Wrong{"two_limits", changed("at_least: 1", "at_least: 1, equals: 2"), ErrorKind::kOutOfRange, {"2 limits"}},
        Wrong{"no_limit", changed(", at_least: 1", ""), ErrorKind::kOutOfRange, {"0 limits"}},
        Wrong{"limit_not_finite", changed("at_least: 1", "at_least: .nan"), ErrorKind::kNonFinite, {"at_least"}},
        Wrong{"limit_infinite", changed("at_least: 1", "at_most: .inf"), ErrorKind::kNonFinite, {"at_most"}},
        Wrong{"limit_beyond_all", changed("at_least: 1", "at_most: 1e16"), ErrorKind::kOutOfRange, {"at_most"}},
        Wrong{"limit_that_all_meet",
              changed("at_least: 1", "at_least: 0"),
              ErrorKind::kOutOfRange,
              {"criteria[0]: baseline.per_window.allocations", "'>= 0'", "every value meets it"}},
        Wrong{"limit_that_none_meets",
              changed("held_bytes, equals: 0", "held_bytes, equals: -1"),
              ErrorKind::kOutOfRange,
              {"criteria[1]", "'= -1'", "says nothing"}},
        Wrong{"limit_that_no_count_reaches",
              changed("held_bytes, equals: 0", "held_bytes, at_most: 1e14"),
              ErrorKind::kOutOfRange,
              {"criteria[1]", "'<= 1e+14'", "says nothing", "1e12"}},
        Wrong{"limit_that_all_counts_meet",
              changed("held_bytes, equals: 0", "held_bytes, at_most: 1e12"),
              ErrorKind::kOutOfRange,
              {"criteria[1]", "every value meets it"}},
        Wrong{"share_of_0_percent",
              speed_with("gpu.busy_fraction, at_least: 0"),
              ErrorKind::kOutOfRange,
              {"gpu.busy_fraction", "none is below 0"}},
        Wrong{"share_of_100_percent",
              speed_with("gpu.busy_fraction, at_most: 1"),
              ErrorKind::kOutOfRange,
              {"gpu.busy_fraction", "none is above 1"}},
        Wrong{"share_beyond_100_percent",
              speed_with("gpu.busy_fraction, at_most: 1.5"),
              ErrorKind::kOutOfRange,
              {"gpu.busy_fraction", "from 0 up to 1"}},
        Wrong{"looser_than_the_tolerance",
              speed_with("parity.worst_ratio, at_most: 1000"),
              ErrorKind::kOutOfRange,
              {"parity.worst_ratio", "looser than the tolerance"}},
        Wrong{"tolerance_of_the_whole",
              curves("relative: 1\nabsolute: 1e-6", "at_least: 10"),
              ErrorKind::kOutOfRange,
              {"relative", "0.5"}},
        Wrong{"travel_within_the_tolerance",
              curves("relative: 0.001\nabsolute: 1e-6", "at_least: 0.01"),
              ErrorKind::kOutOfRange,
              {"baseline.travel", "swallowed"}},
        Wrong{"budget_for_all_steps",
              scenario("memory_budget", "steps: 8\nsteps_of_memory: 8",
                       {"measure: baseline.over_budget, equals: 1", "measure: optimized.over_budget, equals: 0",
                        "measure: optimized.completed_steps, equals: 8", "measure: optimized.slope_bytes, equals: 0"}),
              ErrorKind::kOutOfRange,
              {"steps_of_memory", "frees nothing"}},
        Wrong{"name", changed("name: planted", "name: Planted run"), ErrorKind::kOutOfRange, {"name"}},
        Wrong{"not_yaml", "{", ErrorKind::kBadArgument, {"not YAML"}},
        Wrong{"no_map", "- a", ErrorKind::kBadArgument, {"not a map"}}),
    [](const auto& instance) { return instance.param.what; });

TEST(Scenario, WithoutACriterionIsRefused) {
  const std::string without = kGood.substr(0, kGood.find("criteria:"));
  for (const auto& [text, value] : {std::pair{"", "none"},
                                    {"criteria: []\n", "none"},
                                    {"criteria: {measure: 1}\n", "a map"},
                                    {"criteria: fast\n", "fast"},
                                    {"criteria: ~\n", "null"}}) {
    try {
      read(without + text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.value(), value) << text;
      EXPECT_TRUE(error.field().ends_with(": criteria")) << error.field();
    }
  }
}

// The same files with limits that can be missed are read.
TEST(Scenario, WithLimitsNearTheEdgeIsRead) {
  EXPECT_NO_THROW(read(speed_with("gpu.busy_fraction, at_least: 0.01")));
  EXPECT_NO_THROW(read(speed_with("gpu.busy_fraction, at_most: 0.99")));
  EXPECT_NO_THROW(read(speed_with("optimized.dispatches_growth, at_most: -1")));
  EXPECT_NO_THROW(read(curves("relative: 0.5\nabsolute: 1e-6", "at_least: 1")));
}

TEST(Scenario, IsReadWithDefaults) {
  const auto config = read(kGood);
  EXPECT_EQ(config.count("warm_up_windows"), 2);
  EXPECT_EQ(config.dataset, "default");
  EXPECT_EQ(config.part, "");
  EXPECT_EQ(config.pipeline(), "energy_flow");
  EXPECT_EQ(config.sizes.at("items"), 8);
}

TEST(Scenario, ANeedThatTheRunDoesNotMeetIsRefused) {
  const auto text =
      scenario("resume", "steps_before: 3\nsteps_after: 2\nforget: energy",
               {"measure: baseline.mismatches, equals: 0", "measure: baseline.mismatches_when_forgetting, at_least: 1",
                "measure: optimized.mismatches, equals: 0"});
  auto stateless = text;
  stateless.replace(stateless.find(".fake"), 5, ".stateless");
  EXPECT_NO_THROW(read(text));
  try {
    read(stateless);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfRange);
    EXPECT_NE(error.remedy().find("needs a run that gives its state"), std::string::npos);
  }
}

TEST(Scenario, AModeThatAComponentOfTheRunHasNotIsRefused) {
  auto in_bf16 = kGood;
  in_bf16.replace(in_bf16.find("dtype: fp32"), 11, "dtype: bf16");
  auto all = fake_catalogue();
  const auto run = [&all](const std::string& text) {
    return run_scenario(read(text, all), all, c10::DeviceType::CPU, true);
  };
  for (auto& one : all.runs) one.components = {"energy_flow.simple_neuron"};
  EXPECT_NO_THROW(run(in_bf16));
  for (auto& one : all.runs) one.components.push_back("energy_flow.optimizer");
  EXPECT_NO_THROW(run(kGood));
  EXPECT_NO_THROW(read(in_bf16, all)) << "it may be listed";
  try {
    run(in_bf16);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadDtype);
    EXPECT_NE(error.remedy().find("energy_flow.optimizer"), std::string::npos) << error.what();
  }
}

TEST(Scenario, TwoOfOneNameAreRefused) {
  const auto folder = std::filesystem::temp_directory_path() / ("planted_folder_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  for (const char* file : {"a.yaml", "b.yaml"}) std::ofstream(folder / file) << kGood;
  EXPECT_THROW(read_scenarios(folder.string(), fake_catalogue()), Error);
  std::filesystem::remove(folder / "b.yaml");
  EXPECT_EQ(read_scenarios(folder.string(), fake_catalogue()).size(), 1u);
  std::filesystem::remove(folder / "a.yaml");  // not remove_all: LibTorch exports one of its own, which crashes
  std::filesystem::remove(folder);
  EXPECT_THROW(read_scenarios(folder.string(), fake_catalogue()), Error);
}

TEST(Scenario, TheDeviceIsPartOfTheName) {
  const std::vector<ScenarioConfig> configs = {read(kGood)};
  CommandOptions options;
  const auto names = [&] {
    std::string all;
    for (const auto& one : planned_scenarios(configs, options)) all += one.name() + " ";
    return all;
  };
  EXPECT_EQ(names(), "energy_flow/planted/cpu ");
  options.device = "cuda";
  EXPECT_EQ(names(), "energy_flow/planted/cuda ");
  options.device = "all";
  EXPECT_EQ(names(), "energy_flow/planted/cpu energy_flow/planted/cuda energy_flow/planted/simt ");
  options.device = "simt";
  EXPECT_EQ(names(), "energy_flow/planted/simt ");
  options.device = "all";
  options.filter = "cuda$";
  EXPECT_EQ(names(), "energy_flow/planted/cuda ");
  options.filter = "plantde";
  EXPECT_THROW(names(), Error);
  options.filter = "(";
  EXPECT_THROW(names(), Error);
}

TEST(Catalogue, EveryKindSaysWhatItProvesAndRequires) {
  EXPECT_FALSE(catalogue().experiments.empty());
  for (const auto& kind : catalogue().experiments) {
    EXPECT_FALSE(kind.proves.empty()) << kind.name;
    EXPECT_NE(kind.run, nullptr) << kind.name;
    EXPECT_TRUE(std::any_of(kind.measures.begin(), kind.measures.end(), [](const auto& one) { return one.required; }))
        << kind.name;
    for (const auto half : {Half::kBaseline, Half::kOptimized})
      EXPECT_TRUE(std::any_of(kind.measures.begin(), kind.measures.end(), [&](const auto& one) {
        return one.half == half;
      })) << kind.name;
  }
}

}  // namespace
}  // namespace twinbench::fake

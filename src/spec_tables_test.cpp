// spec.json: every table arrives where code would put it; what is wrong is refused by file and entry.
#include "src/spec_tables.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/common/error.h"
#include "src/spec_parts.h"

namespace twinbench {
namespace {

ComponentSpec sample() {
  ComponentSpec spec;
  spec.pipeline = "test", spec.name = "sample";
  spec.proof = {{"dispatches", "", nothing, nothing}};
  return spec;
}

TEST(SpecTables, EveryTableArrives) {
  ComponentSpec spec = sample();
  read_tables(spec, R"({
    "summary": "s", "source": "test C01", "sin": "slow", "batch_size": "rows", "dtypes": ["fp32", "bf16"],
    "sizes": [["rows", 0], ["width", 1, 64]],
    "options": [{"switch": "gate", "default": true, "meaning": "m"},
                {"real": "scale", "default": 0.5, "range": [0, 1], "meaning": "m", "of_inputs": true}],
    "cases": {"order": ["rows", "width"], "list": [
      {"name": "tiny", "sizes": [4, 3]},
      {"name": "backward_odd", "sizes": [37, 61], "pass": "backward", "options": {"scale": 0.25}, "timed": true}]},
    "card_limits": [{"of": "4 * width", "most": 96, "meaning": "bytes"},
                    {"of": "rows", "most": 9, "pass": "backward", "meaning": "rows"}],
    "proof": {"dispatches": "rows + 1"},
    "claims": [{"row": "test 1", "document": "D0", "place": "p", "text": "t", "figure": "5x", "ratio": 5,
                "recomputed": "5", "verdict": "ok", "instead": "i", "measures": ["speedup"]}]})");
  EXPECT_EQ(spec.summary + spec.source + spec.sin + spec.batch_size, "stest C01slowrows");
  EXPECT_EQ(spec.dtypes, (std::vector<Dtype>{Dtype::kFp32, Dtype::kBf16}));
  ASSERT_EQ(spec.signature.sizes.size(), 2u);
  EXPECT_EQ(spec.signature.sizes[1].name, "width");
  EXPECT_EQ(spec.signature.sizes[1].low, 1);
  EXPECT_EQ(spec.signature.sizes[1].high, 64);
  EXPECT_EQ(spec.signature.options.size(), 2u);
  ASSERT_EQ(spec.cases.size(), 2u);
  EXPECT_EQ(spec.cases[0].sizes, (Sizes{{"rows", 4}, {"width", 3}}));
  EXPECT_EQ(spec.cases[1].pass, Pass::kBackward);
  EXPECT_EQ(spec.cases[1].options.at("scale"), 0.25);
  EXPECT_TRUE(spec.cases[1].timed && !spec.cases[0].timed);
  ASSERT_EQ(spec.card_limits.size(), 2u);
  EXPECT_EQ(spec.card_limits[0].of.text() + " " + spec.card_limits[0].meaning, "4 * width bytes");
  EXPECT_TRUE(spec.card_limits[0].most == 96 && !spec.card_limits[0].pass);
  EXPECT_EQ(spec.card_limits[1].pass, Pass::kBackward);
  EXPECT_EQ(spec.proof[0].formula, "rows + 1");
  ASSERT_EQ(spec.claims.size(), 1u);
  EXPECT_EQ(spec.claims[0].ratio, 5.0);
}

void expect_refused(const std::string& text, ErrorKind kind, const std::vector<std::string>& parts) {
  ComponentSpec spec = sample();
  try {
    read_tables(spec, text);
    FAIL() << "accepted: " << text;
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_EQ(error.kind(), kind) << said;
    EXPECT_NE(said.find("src/test/sample/spec.json"), std::string::npos) << said;
    for (const auto& part : parts) EXPECT_NE(said.find(part), std::string::npos) << part << " is not in: " << said;
  }
}

TEST(SpecTables, RefusesByFileAndEntry) {
  const auto with_case = [](const std::string& one) {
    return R"({"cases": {"order": ["rows"], "list": [)" + one + "]}}";
  };
  expect_refused(R"({"unordered_on_card": {"optimized": "?"}})", ErrorKind::kUnknownName, {"unordered_on_card"});
  expect_refused(R"({"library_limits": {"nowhere": "?"}})", ErrorKind::kUnknownName, {"library_limits", "nowhere"});
  expect_refused("", ErrorKind::kBadFile, {"missing", "beside spec.cpp"});
  expect_refused("{", ErrorKind::kBadFile, {"not what spec.json holds"});
  expect_refused(R"({"summry": "s"})", ErrorKind::kUnknownName, {"summry", "did you mean 'summary'"});
  expect_refused(R"({"summary": 7})", ErrorKind::kBadFile, {"spec.json: summary", "type must be string"});
  expect_refused(R"({"dtypes": ["fp31"]})", ErrorKind::kUnknownName, {"dtypes", "fp31"});
  expect_refused(R"({"sizes": [["rows", "many"]]})", ErrorKind::kBadFile, {"spec.json: sizes", "type must be number"});
  expect_refused(R"({"options": [{"switch": "gate", "default": 1, "meaning": "m"}]})", ErrorKind::kBadFile,
                 {"spec.json: options", "type must be boolean"});
  expect_refused(with_case(R"({"name": "tiny", "sizes": [4], "pass": "back"})"), ErrorKind::kUnknownName,
                 {"case tiny: pass", "back", "forward and backward"});
  expect_refused(R"({"card_limits": [{"of": "rows *", "most": 9, "meaning": "m"}]})", ErrorKind::kBadFile,
                 {"spec.json: card_limits", "rows *", "at character 7"});
  expect_refused(with_case(R"({"name": "tiny", "sizes": "4"})"), ErrorKind::kBadFile, {"case tiny: sizes"});
  expect_refused(with_case(R"({"name": "tiny", "sizes": [4, 3]})"), ErrorKind::kBadFile, {"case tiny", "2 sizes"});
  expect_refused(with_case(R"({"name": "tiny", "sizes": [4], "timd": true})"), ErrorKind::kUnknownName,
                 {"case tiny", "timd", "did you mean 'timed'"});
  expect_refused(R"({"proof": {"dispatchs": "rows"}})", ErrorKind::kUnknownName, {"proof", "dispatchs"});
}

TEST(SpecTables, AnOptionIsDefinedOnce) {
  ComponentSpec heads = sample(), taken = sample();
  heads.proof.push_back({"scalar_reads", "", nothing, nothing});
  read_tables(heads, spec_text("energy_flow.carrier_heads"));
  read_tables(taken, R"({"summary": "s", "options": [
    {"like": "energy_flow.carrier_heads", "take": ["noise", "seed"]},
    {"like": "energy_flow.carrier_heads", "take": ["most_spawned"], "default": 7, "meaning": "m"}]})");
  const auto of_heads = [&](const std::string& name) {
    return *std::find_if(heads.signature.options.begin(), heads.signature.options.end(),
                         [&](const OptionSpec& option) { return option.name == name; });
  };
  ASSERT_EQ(taken.signature.options.size(), 3u);
  for (const auto& option : taken.signature.options) {
    const OptionSpec defined = of_heads(option.name);
    const bool differs = option.name == "most_spawned";
    EXPECT_EQ(option.kind, defined.kind);
    EXPECT_TRUE(option.low == defined.low && option.high == defined.high);
    EXPECT_EQ(option.otherwise, differs ? 7 : defined.otherwise);
    EXPECT_EQ(option.meaning, differs ? "m" : defined.meaning);
  }
  const auto like = [](const std::string& rest) { return R"({"options": [{"like": "energy_flow.)" + rest + "}]}"; };
  expect_refused(like(R"(carrier_head", "take": ["noise"])"), ErrorKind::kUnknownName, {"like", "carrier_head"});
  expect_refused(like(R"(carrier_heads", "take": ["noisy"])"), ErrorKind::kUnknownName,
                 {"like energy_flow.carrier_heads", "noisy", "did you mean 'noise'"});
  expect_refused(like(R"(flow_forward", "take": ["noise"])"), ErrorKind::kUnknownName,
                 {"defines no such option itself"});
  expect_refused(like(R"(carrier_heads", "take": ["noise", "seed"], "default": 1)"), ErrorKind::kBadFile,
                 {"2 options", "take one alone"});
  expect_refused(like(R"(carrier_heads", "take": ["noise"], "range": [0, 1])"), ErrorKind::kUnknownName, {"range"});
}

TEST(SpecTables, NoTextWhereCodeSaysAll) {
  ComponentSpec spec = sample();
  spec.summary = "in code";
  read_tables(spec, "");
  EXPECT_TRUE(spec.cases.empty());
}

}  // namespace
}  // namespace twinbench

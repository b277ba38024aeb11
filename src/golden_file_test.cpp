// Worked examples as data: what a goldens.json may say, and what is refused by name.
#include "src/golden_file.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "src/registry.h"
#include "src/spec_parts.h"

namespace twinbench {
namespace {

ComponentSpec sample() {
  ComponentSpec spec;
  spec.pipeline = "test", spec.name = "sample";
  spec.signature = {
      .sizes = {{"items", 0}},
      .inputs = {data("x", "items, 2", from_case(1)), weight("w", "3, 2", xavier(1)), bias("b", "3", normal(2, 0.1)),
                 data("z", "items", from_case(3)).of(Element::kComplex)},
      .outputs = {output("y", "items, 3", {})},
  };
  return spec;
}

TEST(GoldenFile, ReadsEveryForm) {
  const auto goldens = parse_goldens(sample(), R"({
    "common": {"sizes": {"items": 1}, "inputs": {"w": {"toy": 2}, "b": {"fill": 0.5}}, "otherwise": {"drawn": 7}},
    "goldens": [
      {"name": "one", "inputs": {"x": [[1, "nan"]], "z": [[1, -2]]}, "absolute": 1e-3,
       "expected": {"y": [[1, 2, "-inf"]]}},
      {"name": "two", "inputs": {"b": null}, "expected": {"y": [[0, 0, 0]]}}]})");
  ASSERT_EQ(goldens.size(), 2u);
  EXPECT_EQ(goldens[0].absolute, 1e-3);
  EXPECT_TRUE(goldens[0].inputs["x"][0][1].isnan().item<bool>());
  EXPECT_EQ(goldens[0].inputs["w"].sizes(), (at::IntArrayRef{3, 2}));
  EXPECT_EQ(goldens[0].inputs["b"][2].item<float>(), 0.5f);
  EXPECT_EQ(at::imag(goldens[0].inputs["z"])[0].item<float>(), -2.0f);
  EXPECT_TRUE(goldens[0].expected["y"][0][2].isinf().item<bool>());
  EXPECT_NE(goldens[1].inputs["b"][0].item<float>(), 0.5f);  // null: not what is common, but drawn
}

void expect_refused(const std::string& golden, const std::string& part) {
  try {
    parse_goldens(sample(), R"({"common": {"sizes": {"items": 1}}, "goldens": [)" + golden + "]}");
    FAIL() << "accepted: " << golden;
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("src/test/sample/goldens.json"), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
}

TEST(GoldenFile, RefusesByName) {
  const std::string fine = R"("otherwise": {"fill": 0}, "expected": {"y": [[0, 0, 0]]})";
  expect_refused("{" + fine + "}", "name");
  expect_refused(R"({"name": "g", "input": {}, )" + fine + "}", "did you mean 'inputs'");
  expect_refused(R"({"name": "g", "inputs": {"xx": [[0, 0]]}, )" + fine + "}", "xx");
  expect_refused(R"({"name": "g", "inputs": {"x": [[0, 0, 0]]}, )" + fine + "}", "expected [1, 2]");
  expect_refused(R"({"name": "g", "inputs": {"x": [["one", 0]]}, )" + fine + "}", "one");
  expect_refused(R"({"name": "g", "expected": {"y": [[0, 0, 0]]}})", "missing");
  expect_refused(R"({"name": "g", "otherwise": {"fill": 0}, "expected": {"v": [[0]]}})", "expected");
  expect_refused(R"({"name": "g", "inputs": {"x": {"fil": 0}}, )" + fine + "}", "toy, fill and drawn");
  EXPECT_THROW(parse_goldens(sample(), "{"), Error);
}

TEST(GoldenFile, EveryComponentsFileIsRead) {
  for (const auto& component : components())
    EXPECT_NO_THROW((void)worked_examples(component.spec)) << component.spec.id();
}

TEST(GoldenFile, SomeElementsAreSaid) {
  const auto read = [](const std::string& entries) {
    return parse_goldens(sample(), R"({"goldens": [{"name": "one", "sizes": {"items": 2}, "otherwise": {"drawn": 7},
      "expected": {"y": {"entries": )" +
                                       entries + "}}}]}");
  };
  const Golden golden = read("[[1, 2, 0.5], [0, 0, -3]]").front();
  EXPECT_EQ(golden.said["y"].sum().item<std::int64_t>(), 2);
  EXPECT_TRUE(golden.said["y"][1][2].item<bool>());
  EXPECT_EQ(golden.expected["y"][1][2].item<float>(), 0.5f);
  EXPECT_THROW(read("[[1, 0.5]]"), Error);
  EXPECT_THROW(read("[[2, 0, 0.5]]"), Error);
}

}  // namespace
}  // namespace twinbench

// Every mistake in a specification is named when the registry is built: file, entry and remedy.
#include "src/check_spec.h"

#include <gtest/gtest.h>

#include "src/spec_parts.h"

namespace twinbench {
namespace {

ComponentSpec correct() {
  ComponentSpec spec;
  spec.pipeline = "test", spec.name = "sample";
  spec.summary = "y = w x.", spec.source = "test C01", spec.sin = "one at a time";
  spec.signature = {
      .sizes = {{"items", 0, 100}, {"width", 1, 100}},
      .derived = {{"twice", Expression("2 * width")}},
      .options = {real_option("slope", 1, 0, 2, "of y"), switch_option("wrong_sign", false, "a documented mistake")},
      .inputs = {data("x", "items, width", from_case(1)), weight("w", "twice, width", xavier(1))},
      .outputs = {output("y", "items, twice", {}).with_gradient(2)},
  };
  spec.batch_size = "items";
  spec.cases = {sized_case("tiny", {{"items", 3}, {"width", 2}})};
  spec.proof = {{"dispatches", "items", nothing, nothing}};
  spec.cost = [](const Setting&) { return Cost{}; };
  return spec;
}

// The mistake must be found, and its message hold these parts.
void expect_refused(const ComponentSpec& spec, std::vector<std::string> parts) {
  parts.push_back("src/test/sample/spec.cpp");
  try {
    check_spec(spec);
    FAIL() << "accepted: " << parts.front();
  } catch (const Error& error) {
    for (const auto& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " is not in: " << error.what();
  }
}

TEST(CheckSpec, AcceptsACorrectOne) { EXPECT_NO_THROW(check_spec(correct())); }

TEST(CheckSpec, CardLimits) {
  ComponentSpec spec = correct();
  const std::string size = spec.signature.sizes.front().name;
  spec.card_limits = {{Expression("4 * " + size), 96, std::nullopt, "bytes"}};
  EXPECT_NO_THROW(check_spec(spec));
  spec.card_limits = {{Expression("4 * widht"), 96, std::nullopt, "bytes"}};
  expect_refused(spec, {"card_limits 4 * widht", "no such size"});
  spec.card_limits = {{Expression(size), 0, std::nullopt, "bytes"}};
  expect_refused(spec, {"card_limits " + size, "largest allowed number"});
  spec.card_limits = {{Expression(size), 96, std::nullopt, ""}};
  expect_refused(spec, {"card_limits " + size, "what it counts"});
}

TEST(CheckSpec, AnotherNameThanThatOfItsFolder) {
  ComponentSpec spec;
  EXPECT_NO_THROW(set_id(spec, "test", "sample"));
  EXPECT_EQ(spec.id(), "test.sample");
  EXPECT_NO_THROW(set_id(spec, "test", "sample"));
  for (const auto& [pipeline, name] : {std::pair{"test", "other"}, {"other", "sample"}}) {
    try {
      set_id(spec, pipeline, name);
      FAIL() << "accepted: " << pipeline << "." << name;
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(std::string("src/") + pipeline + "/" + name + "/spec.cpp: "), std::string::npos)
          << message;
      EXPECT_NE(message.find("components.def"), std::string::npos) << message;
    }
  }
}

TEST(CheckSpec, UnknownSizeSymbol) {
  ComponentSpec spec = correct();
  spec.signature.inputs[0].shape = shape_of("items, widht");
  expect_refused(spec, {"input x", "widht", "did you mean 'width'"});
  spec = correct();
  spec.signature.derived[0].value = Expression("2 * height");
  expect_refused(spec, {"derived size twice", "height"});
  spec = correct();
  spec.signature.outputs[0].shape = shape_of("layer, width");  // only what is one per something has layers
  expect_refused(spec, {"output y", "layer"});
}

TEST(CheckSpec, TwoOfOneName) {
  ComponentSpec spec = correct();
  spec.signature.inputs.push_back(spec.signature.inputs[0]);
  expect_refused(spec, {"input", "x", "taken"});
  spec = correct();
  spec.signature.options.push_back(spec.signature.options[0]);
  expect_refused(spec, {"option", "slope", "taken"});
  spec = correct();
  spec.signature.sizes.push_back({"twice"});
  expect_refused(spec, {"derived size", "twice", "taken"});
}

TEST(CheckSpec, DrawNumberUsedTwice) {
  ComponentSpec spec = correct();
  spec.signature.inputs.push_back(bias("b", "twice", normal(1, 0.1)));
  expect_refused(spec, {"input b", "draw number 1", "w has it already"});
  spec = correct();
  spec.cases.push_back(backward(spec.cases[0]));
  spec.signature.outputs[0].gradient->number = 1;
  expect_refused(spec, {"input grad_y", "draw number 1", "x has it already"});
  spec = correct();  // one per layer: the second layer's number meets another tensor's
  spec.signature.sizes.push_back({"layers"});
  spec.cases[0].sizes["layers"] = 2;
  spec.signature.inputs.push_back(weight("v", "width, width", xavier(5)).one_per("layers", 2));
  spec.signature.inputs.push_back(weight("u", "width, width", xavier(7)));
  expect_refused(spec, {"input u", "draw number 7", "v_1 has it already"});
}

TEST(CheckSpec, OptionsAndSizesOfCases) {
  ComponentSpec spec = correct();
  spec.cases[0].options["slope"] = 3;
  expect_refused(spec, {"case tiny", "slope", "from 0 to 2"});
  spec = correct();
  spec.cases[0].options["slop"] = 1;
  expect_refused(spec, {"case tiny", "slop", "did you mean 'slope'"});
  spec = correct();
  spec.cases[0].options["wrong_sign"] = 0.5;
  expect_refused(spec, {"case tiny", "wrong_sign", "a whole number"});
  spec = correct();
  spec.signature.options[0].otherwise = 5;
  expect_refused(spec, {"option slope", "5", "outside"});
  spec = correct();
  spec.cases[0].sizes.erase("width");
  expect_refused(spec, {"case tiny", "width", "does not give"});
  spec = correct();
  spec.cases[0].sizes["width"] = 101;
  expect_refused(spec, {"case tiny", "width = 101", "1 to 100"});
  spec = correct();
  spec.cases[0].sizes["depth"] = 1;
  expect_refused(spec, {"case tiny", "depth"});
  spec = correct();
  spec.cases[0].distribution = "norml";
  expect_refused(spec, {"case tiny", "norml", "did you mean 'normal'"});
}

TEST(CheckSpec, AxesDrawsAndSpecimens) {
  ComponentSpec spec = correct();
  spec.signature.outputs[0].batch_axis = 2;
  expect_refused(spec, {"output y", "batch axis 2"});
  spec = correct();
  spec.signature.inputs[1] = weight("w", "twice", xavier(1));
  expect_refused(spec, {"input w", "xavier"});
  spec = correct();
  spec.signature.inputs[0].draw = from_case(1, 1, "height");
  expect_refused(spec, {"input x", "height"});
  spec = correct();
  spec.cases[0].specimen = "slope";
  expect_refused(spec, {"case tiny", "slope", "a switch"});
  spec = correct();
  spec.cases.push_back(sized_case("mistaken", spec.cases[0].sizes, {{"wrong_sign", 1}}));
  spec.cases[1].specimen = "wrong_sign";
  EXPECT_NO_THROW(check_spec(spec));
  spec.cases[1].timed = true;
  expect_refused(spec, {"case mistaken", "wrong_sign", "never timed"});
  spec.cases[1].timed = false;
  spec.cases[1].options.clear();
  expect_refused(spec, {"case mistaken", "wrong_sign", "on"});
  spec.cases[1].options = {{"wrong_sign", 1}};
  std::swap(spec.cases[0], spec.cases[1]);
  expect_refused(spec, {"case mistaken", "first case"});
  spec = correct();
  spec.proof.clear();
  expect_refused(spec, {"proof"});
}

TEST(CheckSpec, ComplexAndMeasuredTensors) {
  ComponentSpec spec = correct();
  spec.signature.inputs.push_back(data("z", "2, items", from_case(7)).batch(1).of(Element::kPlanar));
  EXPECT_NO_THROW(check_spec(spec));
  spec.signature.inputs.back().shape = shape_of("items, 2");
  expect_refused(spec, {"input z", "planar", "first extent is 2"});
  spec = correct();
  spec.signature.inputs[1].element = Element::kComplex;
  expect_refused(spec, {"input w", "xavier", "real values"});
  spec = correct();
  spec.signature.outputs[0].tolerance.kind = Tolerance::Kind::kMeasured;
  expect_refused(spec, {"output y", "measured", "no gradient"});
}

TEST(CheckSpec, FormulasRelationsAndRefusals) {
  ComponentSpec spec = correct();
  spec.proof[0].baseline = nullptr;
  expect_refused(spec, {"proof dispatches", "of_result"});
  spec.proof[0].of_result = [](Variant, const NamedTensors&, const Setting&) { return std::int64_t{0}; };
  EXPECT_NO_THROW(check_spec(spec));
  spec.relations = {{"split or whole", nullptr}};
  expect_refused(spec, {"relation", "split or whole"});
  spec = correct();
  spec.refusals = {{"NaN", [](NamedTensors&, Setting&) {}, ErrorKind::kNonFinite, ""}};
  expect_refused(spec, {"refusal", "NaN", "field"});
}

}  // namespace
}  // namespace twinbench

// What follows from a signature: expansion, generation, binding, and the refusal of wrong tensors for every component.
#include "src/inputs.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "src/registry.h"
#include "src/spec_parts.h"

namespace twinbench {
namespace {

// x [items, width], complex z [items], weights w_l [in_l, width] with in_0 = width + 1.
ComponentSpec layered() {
  ComponentSpec spec;
  spec.signature = {
      .sizes = {{"items", 0, 100}, {"width", 1, 100}, {"layers", 1, 8}},
      .derived = {{"cells", Expression("items * width")}, {"inner", Expression("2 * width"), true}},
      .options = {real_option("slope", 0.25, 0, 1, "of y"),
                  choice_option("mode", {"loop", "batched"}, "batched", "how")},
      .inputs = {data("x", "items, width", from_case(1)), data("z", "items", from_case(2)).of(Element::kComplex),
                 weight("w", "layer == 0 ? width + 1 : width, width", xavier(1)).one_per("layers", 2),
                 bias("b", "width", normal(2, 0.1)).one_per("layers", 2), weight("v", "inner, width", xavier(40)),
                 keys("ids", "any")},
      .outputs = {output("y", "items, width", {}).with_gradient(3), exact_output("n", "items", Element::kInt32)},
  };
  return spec;
}

Setting setting_of(const ComponentSpec& spec, Pass pass = Pass::kForward) {
  Setting setting;
  setting.input_case = sized_case("case", {{"items", 3}, {"width", 4}, {"layers", 2}});
  setting.input_case.pass = pass;
  return completed(spec.signature, setting);
}

std::vector<std::string> names_of(const auto& list) {
  std::vector<std::string> names;
  for (const auto& one : list) names.push_back(one.name);
  return names;
}

TEST(Inputs, LayersAlternateAndGradientsFollow) {
  const ComponentSpec spec = layered();
  EXPECT_EQ(names_of(inputs_of(spec.signature, setting_of(spec))),
            (std::vector<std::string>{"x", "z", "w_0", "b_0", "w_1", "b_1", "v", "ids"}));
  const Setting backward = setting_of(spec, Pass::kBackward);
  EXPECT_EQ(inputs_of(spec.signature, backward).back().name, "grad_y");
  EXPECT_EQ(names_of(outputs_of(spec.signature, backward)),
            (std::vector<std::string>{"grad_x", "grad_z", "grad_w_0", "grad_b_0", "grad_w_1", "grad_b_1", "grad_v"}));
}

TEST(Inputs, MeasuredCountsBelongToBothPasses) {
  ComponentSpec spec = layered();
  const Tolerance measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  spec.signature.outputs.push_back(output("iterations", "1", measured).of(Element::kInt32));
  spec.signature.outputs.push_back(output("seconds", "1", measured).of(Element::kDouble));
  const auto names = names_of(outputs_of(spec.signature, setting_of(spec, Pass::kBackward)));
  EXPECT_EQ(names.back(), "iterations");  // and no seconds
  EXPECT_EQ(std::count(names.begin(), names.end(), "seconds"), 0);
}

TEST(Inputs, DefaultsAndDerivedSizesAreFilledIn) {
  const ComponentSpec spec = layered();
  const Setting setting = setting_of(spec);
  EXPECT_EQ(setting.option("slope"), 0.25);
  EXPECT_EQ(setting.option("mode"), 1);
  EXPECT_EQ(setting.size("cells"), 12);
  EXPECT_THROW((void)setting.option("slop"), Error);
  Setting outside = setting;
  outside.input_case.sizes["width"] = 0;
  EXPECT_THROW((void)completed(spec.signature, outside), Error);
}

TEST(Inputs, GenerationGivesWhatTheSignatureSays) {
  const ComponentSpec spec = layered();
  const NamedTensors inputs = generate_inputs(spec, setting_of(spec), 5);
  EXPECT_EQ(inputs["w_0"].sizes(), (at::IntArrayRef{5, 4}));
  EXPECT_EQ(inputs["w_1"].sizes(), (at::IntArrayRef{4, 4}));
  EXPECT_EQ(inputs["z"].scalar_type(), at::kComplexFloat);
  EXPECT_EQ(inputs["ids"].scalar_type(), at::kLong);
  EXPECT_FALSE(inputs["w_1"].equal(inputs["w_0"].narrow(0, 0, 4)));
  EXPECT_GT(at::imag(inputs["z"]).abs().sum().item<float>(), 0);
  EXPECT_TRUE(inputs["x"].equal(generate_inputs(spec, setting_of(spec), 5)["x"]));
}

TEST(Inputs, TensorsBindSizes) {
  const ComponentSpec spec = layered();
  NamedTensors inputs = generate_inputs(spec, setting_of(spec), 5);
  inputs.set("v", at::zeros({9, 4}));  // a free derived size may be another
  const Setting found = bound(spec.signature, inputs, {});
  EXPECT_EQ(found.size("items"), 3);
  EXPECT_EQ(found.size("layers"), 2);
  EXPECT_EQ(found.size("inner"), 9);
  EXPECT_EQ(found.size("cells"), 12);
}

void expect_refused(const NamedTensors& inputs, const ComponentSpec& spec, ErrorKind kind, const std::string& field) {
  try {
    (void)bound(spec.signature, inputs, {});
    FAIL() << "accepted a wrong " << field;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_EQ(error.field(), field) << error.what();
  }
}

TEST(Inputs, WrongTensorsAreNamed) {
  const ComponentSpec spec = layered();
  const NamedTensors right = generate_inputs(spec, setting_of(spec), 5);
  const auto with = [&](const char* name, const at::Tensor& tensor) {
    NamedTensors changed = right;
    changed.set(name, tensor);
    return changed;
  };
  expect_refused(with("w_1", at::zeros({5, 4})), spec, ErrorKind::kBadShape, "w_1");
  expect_refused(with("b_0", at::zeros({3})), spec, ErrorKind::kBadShape, "b_0");
  expect_refused(with("x", at::zeros({3})), spec, ErrorKind::kBadShape, "x");
  expect_refused(with("z", at::zeros({3})), spec, ErrorKind::kBadDtype, "z");
  expect_refused(with("x", at::zeros({3, 4}, at::kDouble)), spec, ErrorKind::kBadDtype, "x");
  expect_refused(with("x", at::zeros({101, 4})), spec, ErrorKind::kOutOfRange, "x");
  expect_refused(with("w_3", at::zeros({4, 4})), spec, ErrorKind::kUnknownName, "input");
  Setting asked;
  asked.input_case.sizes = {{"items", 5}};
  EXPECT_THROW((void)bound(spec.signature, right, asked), Error);
}

// Every component of the list, on both CPU variants: a missing input, another dtype, one more along each axis that the
// signature knows, an unknown option and one out of range are refused before any variant sees them.
TEST(Inputs, EveryComponentRefusesWrongInput) {
  for (const auto& component : components()) {
    const Cell cell{&component, Variant::kOptimized, c10::DeviceType::CPU, Dtype::kFp32, &component.spec.cases.front()};
    for (const auto& one : component.spec.cases)
      if (one.name == "tiny") const_cast<Cell&>(cell).input_case = &one;
    const Setting setting = cell.setting();
    const NamedTensors right = generate_inputs(component.spec, setting, 1);
    ASSERT_NO_THROW((void)bound(component.spec.signature, right, setting)) << component.spec.id();
    for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) {
      const auto refused = [&](const NamedTensors& inputs, const Setting& asked, const std::string& what) {
        EXPECT_THROW((void)component.make(variant, inputs, asked), Error) << component.spec.id() << ": " << what;
      };
      for (const auto& input : inputs_of(component.spec.signature, setting)) {
        NamedTensors missing, other = right;
        for (const auto& [name, tensor] : right)
          if (name != input.name) missing.set(name, tensor);
        refused(missing, setting, "without " + input.name);
        const at::ScalarType dtype = right[input.name].scalar_type();
        other.set(input.name, right[input.name].to(dtype == at::kDouble        ? at::kFloat
                                                   : at::isFloatingType(dtype) ? at::kDouble
                                                                               : at::kShort));
        refused(other, setting, input.name + " of another dtype");
        for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
          if (input.shape[axis].is_any()) continue;
          auto shape = right[input.name].sizes().vec();
          ++shape[axis];
          other.set(input.name, at::zeros(shape, right[input.name].options()));
          refused(other, setting, input.name + " longer along axis " + std::to_string(axis));
        }
      }
      Setting asked = setting;
      asked.input_case.options["no_such_option"] = 1;
      refused(right, asked, "an unknown option");
      for (const auto& option : component.spec.signature.options) {
        asked = setting;
        asked.input_case.options[option.name] = option.high * 2 + 1;
        refused(right, asked, option.name + " out of range");
      }
      for (const auto& size : component.spec.signature.sizes)
        for (const std::int64_t value : {size.low - 1, size.high + 1, std::int64_t{-1}, std::int64_t{1} << 62}) {
          if (value >= size.low && value <= size.high) continue;
          asked = setting;
          asked.input_case.sizes[size.name] = value;
          refused(right, asked, size.name + " = " + std::to_string(value));
        }
    }
  }
}

}  // namespace
}  // namespace twinbench

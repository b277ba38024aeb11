// What the engines do not ask of sem.complex_adamw: a run that is interrupted and resumed has the same bits; the
// documented tensors are as many as documented; the random numbers are the specification's.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "optimized/sem/complex_adamw/plan.h"
#include "src/registry.h"
#include "src/sem/common/parameter_inventory.h"

namespace twinbench::sem::complex_adamw {
namespace {

constexpr std::int64_t kSteps = 6;

// Steps [from, until) of `inputs`, from the state that they hold.
NamedTensors outputs_of(Variant variant, Device device, NamedTensors inputs, Setting setting, std::int64_t from,
                        std::int64_t until) {
  setting.input_case.sizes["steps"] = until - from;
  for (const char* name : {"gradients", "learning_rate", "loss"})
    inputs.set(name, inputs[name].slice(0, from, until).contiguous());
  const auto runnable = find_component("sem.complex_adamw").make(variant, device, inputs, setting);
  runnable->run();
  NamedTensors copies;
  for (const auto& [name, tensor] : runnable->outputs()) copies.set(name, tensor.clone());
  return copies;
}

TEST(ComplexAdamw, ARunThatIsResumedHasTheSameBits) {
  for (const double temperature : {0.0, 1e-4}) {
    const Component& component = find_component("sem.complex_adamw");
    Setting setting;
    setting.input_case = component.spec.cases.front();
    setting.input_case.sizes = {{"tensors", 7}, {"pairs", 5}, {"plain", 1237}, {"paired", 611}, {"steps", kSteps}};
    setting.input_case.options = {{"temperature", temperature}, {"bad_steps", 1}};
    setting = completed(component.spec.signature, setting);
    const NamedTensors inputs = generate_inputs(component.spec, setting, 3);
    for (const auto& [variant, device] : {std::pair{Variant::kBaseline, Device()},
                                          {Variant::kLibrary, Device()},
                                          {Variant::kOptimized, Device()},
                                          {Variant::kOptimized, Device::simt()}}) {
      const NamedTensors whole = outputs_of(variant, device, inputs, setting, 0, kSteps);
      const NamedTensors half = outputs_of(variant, device, inputs, setting, 0, kSteps / 2);
      NamedTensors rest = inputs;
      for (const char* name : {"parameters", "first_moment", "second_moment", "counts"}) rest.set(name, half[name]);
      const NamedTensors resumed = outputs_of(variant, device, rest, setting, kSteps / 2, kSteps);
      for (const char* name : {"parameters", "first_moment", "second_moment", "counts"})
        EXPECT_TRUE(resumed[name].equal(whole[name])) << to_string(variant) << " " << name;
      EXPECT_FALSE(half["parameters"].equal(whole["parameters"]));
    }
  }
}

TEST(ComplexAdamw, TheDocumentedTensorsAreAsDocumented) {
  struct Documented {
    const ModelSizes& model;
    std::size_t tensors;
    std::int64_t parameters, seconds;
  };
  for (const auto& [model, tensors, parameters, seconds] :
       {Documented{kTinyModel, 60, 2210, 1970}, Documented{kSmallModel, 85, 44157, 39933},
        Documented{kMidModel, 110, 4348764, 4070236}, Documented{kMaxModel, 410, 29918896, 28772016}}) {
    std::int64_t all = 0, second = 0;
    for (const auto& one : parameter_inventory(model)) {
      all += one.count;
      second += one.kind == ParameterKind::kImaginary ? 0 : one.count;
    }
    EXPECT_EQ(parameter_inventory(model).size(), tensors);
    EXPECT_EQ(all, parameters);
    EXPECT_EQ(second, seconds);
  }
}

TEST(ComplexAdamw, TheRandomNumbersAreTheSpecifications) {
  const PhiloxWords words = random_block(1234, 0x1000, 0, 0);
  EXPECT_EQ(words.w[0], 0xdd3eb3c6u);
  EXPECT_EQ(words.w[3], 0xf3c0e2a7u);
  const double uniforms[] = {0.86423801, 0.49164760, 0.99502240, 0.95216195};
  const double normals[] = {-0.53945453, 0.02833640, 0.09542130, -0.02957743};
  for (std::uint64_t n = 0; n < 4; ++n) {
    EXPECT_NEAR(uniform_of(words.w[n]), uniforms[n], 5e-9);
    EXPECT_NEAR(normal_of(1234, 0x1000, 0, n), normals[n], 5e-9);
  }
}

TEST(ComplexAdamw, PiecesCoverEachElementWithAGradientOnce) {
  const std::vector<ParameterEntry> table = {
      {ParameterKind::kPlain, 0, 5000, 0},       {ParameterKind::kPlain, 5000, 3, 5000},
      {ParameterKind::kReal, 5003, 4100, 5003},  {ParameterKind::kImaginary, 9103, 4100, 5003},
      {ParameterKind::kPlain, 13203, 0, 9103},   {ParameterKind::kWithoutGradient, 13203, 10, 9103},
      {ParameterKind::kPlain, 13213, 4097, 9113}};
  for (const bool noise : {false, true}) {
    std::vector<int> elements(17310), seconds(13210);
    std::int64_t plain = 0;
    for (const Piece& piece : pieces_of(table, noise)) {
      EXPECT_LE(piece.count, kernels::kPieceElements);
      plain += piece.partner == 0;
      for (std::int64_t i = 0; i < piece.count; ++i) {
        ++elements[static_cast<std::size_t>(piece.first + i)];
        ++seconds[static_cast<std::size_t>(piece.second + i)];
        if (piece.partner != 0) ++elements[static_cast<std::size_t>(piece.first + piece.partner + i)];
      }
    }
    for (std::size_t i = 0; i < elements.size(); ++i) EXPECT_EQ(elements[i], i >= 13203 && i < 13213 ? 0 : 1) << i;
    for (std::size_t i = 0; i < seconds.size(); ++i) EXPECT_EQ(seconds[i], i >= 9103 && i < 9113 ? 0 : 1) << i;
    EXPECT_EQ(plain, noise ? 5 : 4) << "neighbours of one kind are one stretch where no noise tells them apart";
  }
}

}  // namespace
}  // namespace twinbench::sem::complex_adamw

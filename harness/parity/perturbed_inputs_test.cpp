// Numbers that every seed makes alike are moved, zeros too: an input that is nothing but them would seem to matter not.
#include "harness/parity/perturbed_inputs.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "harness/compare/inputs.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

TEST(PerturbedInputs, MoveWhatEverySeedMakesAlike) {
  ComponentSpec spec;
  spec.signature.sizes = {{"n", 0}};
  spec.signature.inputs = {data("zeros", "n", not_drawn()), data("ones", "n", not_drawn()).clamped(0, 1),
                           data("complex", "n", not_drawn()).of(Element::kComplex), data("drawn", "n", normal(1, 1)),
                           keys("keys", "n")};
  spec.finish_inputs = [](NamedTensors& inputs, const Setting& setting, std::uint64_t) {
    const std::int64_t n = setting.size("n");
    inputs.set("zeros", at::zeros({n}));
    inputs.set("ones", at::ones({n}));
    inputs.set("complex", at::zeros({n}, at::kComplexFloat));
    inputs.set("keys", at::arange(n));
  };
  Setting setting;
  setting.input_case.sizes = {{"n", 12}};
  const NamedTensors own = generated_inputs(spec, setting, 1), moved = perturbed_inputs(spec, setting, own, 1);
  for (const char* name : {"zeros", "complex", "drawn"})
    EXPECT_TRUE(moved[name].ne(own[name]).all().item<bool>()) << name;
  EXPECT_FALSE(moved["ones"].equal(own["ones"]));
  EXPECT_TRUE(moved["ones"].le(1).all().item<bool>()) << "within its limits";
  EXPECT_GT(moved["zeros"].abs().max().item<float>(), 0.01F) << "by as much as no tolerance hides";
  EXPECT_TRUE(moved["keys"].equal(own["keys"])) << "keys are no numbers";
}

}  // namespace
}  // namespace twinbench

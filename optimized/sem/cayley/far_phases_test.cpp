// Phases far beyond what weights and fields are drawn to (C04): each place of a row by itself, on every path. With a
// field of ones the intensity is one, so that a phase is its weight exactly; with a step of length 0 x is the field,
// turned: what comes out is the sine and the cosine of the given number.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/registry.h"

namespace twinbench::sem::cayley {
namespace {

constexpr std::int64_t kDim = 21;  // a vector of sixteen and a rest
constexpr float kFar = 1234567.0f;

TEST(CayleyPhases, OneFarPhaseIsTurnedRightAtEachPlace) {
  const Component& component = find_component("sem.cayley");
  for (const Device device : {Device(), Device::simt()})
    for (std::int64_t place = 0; place < kDim; ++place) {
      Setting setting;
      setting.input_case = component.spec.cases.front();
      setting.input_case.sizes = {{"rows", 1}, {"dim", kDim}, {"edges", 40}, {"scales", 1}};
      setting.input_case.options = {{"dt", 0}};
      setting = completed(component.spec.signature, setting);
      NamedTensors inputs = generate_inputs(component.spec, setting, 1);
      inputs["psi"].select(0, 0).fill_(1), inputs["psi"].select(0, 1).zero_();
      inputs["alpha"].fill_(0.25).narrow(0, place, 1).fill_(kFar);
      const auto runnable = component.make(Variant::kOptimized, device, inputs, setting);
      runnable->run();
      const at::Tensor x = runnable->outputs()["x"].to(at::kCPU).to(at::kDouble);
      for (std::int64_t i = 0; i < kDim; ++i) {
        const double phase = i == place ? double{kFar} : 0.25;
        EXPECT_NEAR(x[0][0][i].item<double>(), std::cos(phase), 1e-6) << place << " " << i;
        EXPECT_NEAR(x[1][0][i].item<double>(), std::sin(phase), 1e-6) << place << " " << i;
      }
    }
}

}  // namespace
}  // namespace twinbench::sem::cayley

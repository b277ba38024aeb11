// What the engines do not ask of trainer2.field_dynamics (C15): time can be reversed, energy keeps for hundreds of
// windows, and a window is as many single steps, bit for bit, although it takes over forces from step to step.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "src/inputs.h"
#include "src/registry.h"

namespace twinbench::trainer2::field_dynamics {
namespace {

struct Path {
  Variant variant;
  Device device;
};
std::vector<Path> paths() {
  return {{Variant::kBaseline, Device()}, {Variant::kOptimized, Device()}, {Variant::kOptimized, Device::simt()}};
}

Setting window(std::int64_t steps, Options options) {
  const Component& component = find_component("trainer2.field_dynamics");
  Setting setting;
  setting.input_case = component.spec.cases.front();
  setting.input_case.sizes = {{"width", 4}, {"height", 4}, {"dimension", 2}, {"steps", steps}};
  setting.input_case.options = std::move(options);
  return completed(component.spec.signature, setting);
}

NamedTensors after(const Path& path, const NamedTensors& inputs, const Setting& setting) {
  const auto runnable = find_component("trainer2.field_dynamics").make(path.variant, path.device, inputs, setting);
  runnable->run();
  NamedTensors copies;
  for (const auto& [name, tensor] : runnable->outputs()) copies.set(name, tensor.clone());
  return copies;
}

NamedTensors drawn(const Setting& setting) {
  return generate_inputs(find_component("trainer2.field_dynamics").spec, setting, 5);
}

double farthest(const at::Tensor& a, const at::Tensor& b) {
  return (a.sub(b).abs().max().div(b.abs().max())).item<double>();
}

TEST(FieldDynamics, TimeCanBeReversed) {
  const Setting setting = window(64, {});
  const NamedTensors inputs = drawn(setting);
  for (const Path& path : paths()) {
    const NamedTensors there = after(path, inputs, setting);
    NamedTensors turned = inputs;
    turned.set("field", there["field"]);
    turned.set("momentum", there["momentum"].neg());
    const NamedTensors back = after(path, turned, setting);
    EXPECT_GT(farthest(there["field"], inputs["field"]), 1e-3) << "it has moved";
    EXPECT_LE(farthest(back["field"], inputs["field"]), 1e-5);
    EXPECT_LE(farthest(back["momentum"].neg(), inputs["momentum"]), 1e-5);
  }
}

TEST(FieldDynamics, AWindowIsItsSteps) {
  for (const Options& options : {Options{}, Options{{"harmonic", 0}}, Options{{"dissipative", 1}, {"history", 18}}}) {
    const Setting setting = window(5, options), step = window(1, options);
    const NamedTensors inputs = drawn(setting);
    for (const Path& path : paths()) {
      const NamedTensors whole = after(path, inputs, setting);
      NamedTensors state = inputs;
      for (int i = 0; i < 5; ++i) {
        const NamedTensors next = after(path, state, step);
        for (const char* name : {"field", "momentum", "history"}) state.set(name, next[name]);
      }
      for (const char* name : {"field", "momentum", "history"})
        EXPECT_TRUE(state[name].equal(whole[name])) << name << " on " << to_string(path.variant);
    }
  }
}

// H = |Q|^2 / 2m + k |T - T_eq|^2 / 2 - (hbar^2 / 4m) Re <T, laplacian of T>, on a periodic grid; the defaults'
// constants.
double energy(const at::Tensor& field, const at::Tensor& momentum, const at::Tensor& rest) {
  const at::Tensor t = field.to(at::kComplexDouble), q = momentum.to(at::kComplexDouble);
  at::Tensor laplacian = t.mul(-4);
  for (const std::int64_t axis : {0, 1})
    for (const std::int64_t by : {1, -1}) laplacian = laplacian.add(t.roll(by, axis));
  EXPECT_LE(laplacian.sum().abs().item<double>(), 1e-10 * laplacian.abs().sum().item<double>());
  const auto square = [](const at::Tensor& v) { return v.abs().square().sum().item<double>(); };
  return square(q) / 2 + 0.01 / 2 * square(t.sub(rest.to(at::kComplexDouble))) -
         0.01 / 4 * at::real(t.conj().mul(laplacian)).sum().item<double>();
}

// 25,600 steps, as the specification measured: 400 windows one after the other.
TEST(FieldDynamics, EnergyKeepsOverFourHundredWindows) {
  const Setting setting = window(25600, {{"no_force", 1}});
  const NamedTensors inputs = drawn(setting);
  const NamedTensors late = after({Variant::kOptimized, Device()}, inputs, setting);
  const double before = energy(inputs["field"], inputs["momentum"], inputs["equilibrium"]);
  EXPECT_NEAR(energy(late["field"], late["momentum"], inputs["equilibrium"]), before, 1e-5 * before);
}

}  // namespace
}  // namespace twinbench::trainer2::field_dynamics

// Every kernel that a launcher may choose is launched, and so judged by parity on simt, in some case that every tier
// takes: compiled kernels come from ci/kernel_budgets.json, launched ones from ci/kernel_counts.json, which the cells
// are held against, and where that leaves one out from the cells themselves, in every way their set-up could take.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/compare/inputs.h"
#include "harness/parity/parity.h"
#include "harness/parity/tier.h"
#include "harness/runner/components_in_turn.h"
#include "src/common/choice.h"
#include "src/common/device_event.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

std::set<std::string>& kernels_seen() {
  static std::set<std::string> names;
  return names;
}

// "energy_flow::simple_neuron::Forward", without the namespaces that all share.
std::string without_top(std::string kernel) {
  const std::string prefix = "twinbench::";
  return kernel.rfind(prefix, 0) == 0 ? kernel.substr(prefix.size()) : kernel;
}

nlohmann::json parsed(const char* file) {
  std::ifstream stream(file);
  return nlohmann::json::parse(stream);
}

// Of the component's own namespace.
std::set<std::string> compiled_kernels(const ComponentSpec& spec) {
  static const auto budgets = parsed("ci/kernel_budgets.json");
  const std::string prefix = spec.pipeline + "::" + spec.name + "::";
  std::set<std::string> kernels;
  for (const auto& [kernel, figures] : budgets.at("kernels").items())
    if (kernel.rfind(prefix, 0) == 0) kernels.insert(kernel);
  return kernels;
}

// Launches what parity launches of that case, once each way.
void launch_every_way(const Component& component, const Setting& setting) {
  const NamedTensors inputs =
      placed_inputs(generated_inputs(component.spec, setting, 1), setting.dtype, setting.device);
  std::vector<Choice> choices;
  {
    const ChoiceWatch watch;
    component.make(Variant::kOptimized, inputs, setting)->run();
    choices = watch.made();
  }
  for (const Choice& choice : choices)
    for (const std::string& way : choice.ways) {
      const ChoiceWatch demand(way);
      component.make(Variant::kOptimized, inputs, setting)->run();
    }
}

// Compiled ones that no small case launches but for those that `leave_out` names.
std::set<std::string> not_launched(const Component& component, const std::string& leave_out = "") {
  std::set<std::string> missing = compiled_kernels(component.spec);
  EXPECT_FALSE(missing.empty()) << component.spec.id() << ": ci/kernel_budgets.json has none of its kernels";
  std::vector<Cell> cells;
  for (const Cell& cell : all_cells())
    if (cell.component == &component && cell.device.is_simt() && !is_large(*cell.input_case) &&
        cell.input_case->name != leave_out)
      cells.push_back(cell);
  static const auto counts = parsed("ci/kernel_counts.json").at("cells");
  for (const Cell& cell : cells)
    if (const auto found = counts.find(cell.name()); found != counts.end())
      for (const auto& [kernel, counted] : found->items()) missing.erase(kernel);
  kernels_seen().clear();
  const DeviceEventObserver before = device_event_observer.exchange([](DeviceEvent event, const std::string& name) {
    if (event == DeviceEvent::kLaunch) kernels_seen().insert(without_top(name));
  });
  for (const Cell& cell : cells) {
    if (missing.empty()) break;
    launch_every_way(component, cell.setting());
    for (const std::string& name : kernels_seen()) missing.erase(name);
  }
  device_event_observer = before;
  return missing;
}

// Composites launch the kernels of others.
bool has_own_kernels(const Component& one) {
  return one.has_kernel && std::filesystem::is_directory("kernels/" + one.spec.pipeline + "/" + one.spec.name);
}

TEST(KernelReach, EveryKernelIsLaunchedBySmallCases) {
  int kernels = 0;
  for (const Component* const component : components_in_turn(24, has_own_kernels)) {
    EXPECT_EQ(not_launched(*component), std::set<std::string>{})
        << "of " << component->spec.id() << ": give it a small case whose sizes or options choose them";
    kernels += static_cast<int>(compiled_kernels(component->spec).size());
  }
  EXPECT_GT(kernels, 20);
}

TEST(KernelReach, AKernelThatNoCaseChoosesIsNamed) {
  const std::set<std::string> missing = not_launched(find_component("energy_flow.simple_neuron"), "many");
  EXPECT_EQ(missing, (std::set<std::string>{"energy_flow::simple_neuron::ForwardMany",
                                            "energy_flow::simple_neuron::ForwardTiles"}));
}

}  // namespace
}  // namespace twinbench

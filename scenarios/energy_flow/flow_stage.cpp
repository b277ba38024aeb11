// Sizes and options by the components' own names; weights by their signatures.
#include "scenarios/energy_flow/flow_stage.h"

#include "harness/compare/inputs.h"
#include "src/inputs.h"

namespace twinbench::energy_flow {
namespace {

constexpr std::uint64_t kWeightSeed = 20;

// A component's case "train" at the scenario's sizes.
Setting setting_of(const Component& component, const ScenarioConfig& config, std::int64_t flows,
                   const RunSetting& run) {
  Setting setting{*find_cell(component.spec.id() + "/baseline/cpu/fp32/train").input_case, run.dtype, run.device};
  const auto set = [&](const std::string& size, std::int64_t value) {
    auto& sizes = setting.input_case.sizes;
    if (const auto found = sizes.find(size); found != sizes.end()) found->second = value;
  };
  const auto& sizes = config.sizes;
  const bool is_neuron = component.spec.name == "simple_neuron";
  set("flows", flows);
  set("hidden", is_neuron ? sizes.at("neuron_hidden") : sizes.at("carrier_hidden"));
  set("outputs", sizes.at("neuron_output"));
  set("features", sizes.at("neuron_output"));
  set("layers", sizes.at("carrier_layers"));
  set("energy_width", sizes.at("carrier_hidden") / 2);
  setting.input_case.options = {};
  if (component.spec.name == "carrier_heads")
    setting.input_case.options = {{"noise", config.options.at("exploration_noise")},
                                  {"movement_threshold", config.options.at("spawn_threshold")},
                                  {"most_spawned", static_cast<double>(sizes.at("max_spawn_per_step"))},
                                  {"seed", static_cast<double>(config.seed)}};
  return setting;
}

}  // namespace

Stage::Stage(const char* id, const ScenarioConfig& config, std::int64_t flows, const RunSetting& run)
    : component(&find_component(id)), setting(setting_of(*component, config, flows, run)) {
  Setting small = setting;  // the weights do not depend on the number of flows
  small.input_case.sizes["flows"] = 1;
  small.device = c10::Device(c10::DeviceType::CPU);
  const auto& signature = component->spec.signature;
  const auto all = placed_inputs(generated_inputs(component->spec, small, kWeightSeed), run.dtype, run.device);
  for (const auto& input : inputs_of(signature, completed(signature, small)))
    if (input.role != Role::kData) weights.set(input.name, all[input.name]);
}

std::unique_ptr<Runnable> Stage::make(Variant variant, const NamedTensors& flow_inputs, Pass pass) const {
  NamedTensors inputs = weights;
  for (const auto& [name, tensor] : flow_inputs) inputs.set(name, tensor);
  Setting of_pass = setting;
  of_pass.input_case.pass = pass;
  return component->make(variant, inputs, of_pass);
}

}  // namespace twinbench::energy_flow

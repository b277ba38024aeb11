// Batched: buffers wired once, by address. Per flow: three little runnables for each flow, with copies between them.
#include "scenarios/energy_flow/flow_model.h"

#include <ATen/ATen.h>

#include "src/common/error.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

constexpr std::uint64_t kWeightSeed = 20;  // weights are the same for every variant and population

// A component's setting at the scenario's sizes, starting from its case "train".
Setting setting_of(const Component& component, const ScenarioConfig& config, std::int64_t flows, Dtype dtype) {
  for (const auto& input : component.spec.cases) {
    if (input.name != "train") continue;
    Setting setting{input, dtype, c10::Device(c10::DeviceType::CPU)};
    const auto set = [&](const std::string& size, std::int64_t value) {
      if (setting.input_case.sizes.count(size)) setting.input_case.sizes[size] = value;
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
      setting.input_case.options = {{"noise", config.options.at("exploration_noise")}, {"movement_threshold", config.options.at("spawn_threshold")},
                                {"most_spawned", static_cast<double>(sizes.at("max_spawn_per_step"))}, {"seed", static_cast<double>(config.seed)}};
    return setting;
  }
  throw Error(ErrorKind::kInternal, component.spec.id() + " case", "train", "every component of a scenario has this case");
}

NamedTensors cast(const NamedTensors& values, Dtype dtype) {
  if (dtype != Dtype::kFp64) return values;
  NamedTensors wide;
  for (const auto& [name, tensor] : values) wide.set(name, tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor);
  return wide;
}

struct Stage {
  const Component* component = nullptr;
  Setting setting;
  NamedTensors weights;

  Stage(const char* id, const ScenarioConfig& config, std::int64_t flows, Dtype dtype) : component(&find_component(id)), setting(setting_of(*component, config, flows, dtype)) {
    Setting small = setting;  // the weights do not depend on the number of flows
    small.input_case.sizes["flows"] = 1;
    weights = cast(generate_inputs(component->spec, small, kWeightSeed), dtype);
  }
  std::unique_ptr<Runnable> make(Variant variant, const NamedTensors& flow_inputs) const {
    NamedTensors inputs = weights;
    for (const auto& [name, tensor] : flow_inputs) inputs.set(name, tensor);
    return component->make(variant, inputs, setting);
  }
};

constexpr const char* kNeuron = "energy_flow.simple_neuron";
constexpr const char* kCarrier = "energy_flow.energy_carrier";
constexpr const char* kHeads = "energy_flow.carrier_heads";

class BatchedStep final : public FlowStep {
 public:
  BatchedStep(Variant variant, const ScenarioConfig& config, const FlowState& state, Dtype dtype) {
    const auto flows = state.flows();
    neuron_ = Stage(kNeuron, config, flows, dtype).make(variant, {{"position", state.position}, {"energy", state.energy.unsqueeze(1)}});
    features_ = wired(*neuron_, "features");
    carrier_ = Stage(kCarrier, config, flows, dtype).make(variant, {{"features", features_}, {"energy", state.energy}, {"hidden", state.hidden}});
    carried_ = wired(*carrier_, "output");
    heads_ = Stage(kHeads, config, flows, dtype).make(variant, {{"carried", carried_}, {"position", state.position}, {"sample_key", state.sample_key}, {"local_id", state.local_id}});
  }
  void run() override {
    neuron_->run();
    carrier_->run();
    heads_->run();
  }
  NamedTensors outputs() override {
    NamedTensors all = {{"features", features_}, {"carried", carried_}, {"next_hidden", carrier_->outputs()["next_hidden"]}};
    for (const auto& [name, tensor] : heads_->outputs()) all.set(name, tensor);
    return all;
  }

 private:
  // The buffer that the stage writes on every run: the next one may read it by address.
  static at::Tensor wired(Runnable& stage, const std::string& output) {
    stage.run();
    const auto first = stage.outputs()[output];
    stage.run();
    if (stage.outputs()[output].data_ptr() != first.data_ptr() || !first.is_contiguous())
      throw Error(ErrorKind::kInternal, "output " + output, "moves between runs", "an optimized variant writes one contiguous buffer");
    return first;
  }
  std::unique_ptr<Runnable> neuron_, carrier_, heads_;
  at::Tensor features_, carried_;
};

class PerFlowStep final : public FlowStep {
 public:
  PerFlowStep(const ScenarioConfig& config, const FlowState& state, Dtype dtype) {
    const auto flows = state.flows();
    const auto options = state.position.options();
    const Stage neuron(kNeuron, config, 1, dtype), carrier(kCarrier, config, 1, dtype), heads(kHeads, config, 1, dtype);
    features_ = at::empty({flows, config.sizes.at("neuron_output")}, options);
    carried_ = at::empty({flows, config.sizes.at("carrier_hidden")}, options);
    next_hidden_ = at::empty_like(state.hidden);
    for (std::int64_t f = 0; f < flows; ++f) {
      const auto row = [f](const at::Tensor& tensor) { return tensor.narrow(0, f, 1); };
      One one;
      // Each flow's own buffers, gathered from the shared ones before a step.
      one.position = row(state.position).clone();
      one.energy = row(state.energy).clone();
      one.hidden = state.hidden.narrow(1, f, 1).clone();
      one.shared_position = row(state.position);
      one.shared_energy = row(state.energy);
      one.shared_hidden = state.hidden.narrow(1, f, 1);
      one.features = row(features_);
      one.carried = row(carried_);
      one.next_hidden = next_hidden_.narrow(1, f, 1);
      one.neuron = neuron.make(Variant::kBaseline, {{"position", one.position}, {"energy", one.energy.unsqueeze(1)}});
      one.carrier = carrier.make(Variant::kBaseline, {{"features", one.features}, {"energy", one.energy}, {"hidden", one.hidden}});
      one.heads = heads.make(Variant::kBaseline, {{"carried", one.carried}, {"position", one.position}, {"sample_key", row(state.sample_key)}, {"local_id", row(state.local_id)}});
      flows_.push_back(std::move(one));
    }
  }
  void run() override {
    for (auto& one : flows_) {
      one.position.copy_(one.shared_position);
      one.energy.copy_(one.shared_energy);
      one.hidden.copy_(one.shared_hidden);
      one.neuron->run();
      one.features.copy_(one.neuron->outputs()["features"]);
      one.carrier->run();
      const auto carried = one.carrier->outputs();
      one.carried.copy_(carried["output"]);
      one.next_hidden.copy_(carried["next_hidden"]);
      one.heads->run();
    }
  }
  NamedTensors outputs() override {
    NamedTensors all = {{"features", features_}, {"carried", carried_}, {"next_hidden", next_hidden_}};
    std::map<std::string, std::vector<at::Tensor>> rows;
    std::vector<std::string> order;
    for (auto& one : flows_)
      for (const auto& [name, tensor] : one.heads->outputs()) {
        if (!rows.count(name)) order.push_back(name);
        rows[name].push_back(tensor);
      }
    for (const auto& name : order) all.set(name, at::cat(rows[name], 0));
    return all;
  }

 private:
  struct One {
    at::Tensor position, energy, hidden, shared_position, shared_energy, shared_hidden, features, carried, next_hidden;
    std::unique_ptr<Runnable> neuron, carrier, heads;
  };
  at::Tensor features_, carried_, next_hidden_;
  std::vector<One> flows_;
};

}  // namespace

FlowState FlowState::first(std::int64_t count) const {
  return {position.narrow(0, 0, count), energy.narrow(0, 0, count), hidden.narrow(1, 0, count).contiguous(), sample_key.narrow(0, 0, count), local_id.narrow(0, 0, count)};
}

std::unique_ptr<FlowStep> make_flow_step(Variant variant, const ScenarioConfig& config, const FlowState& state, Dtype dtype) {
  if (variant == Variant::kBaseline) return std::make_unique<PerFlowStep>(config, state, dtype);
  return std::make_unique<BatchedStep>(variant, config, state, dtype);
}

}  // namespace twinbench

// Batched: buffers wired once, by address. Per flow: three little runnables for each flow, with copies between them.
#include "scenarios/energy_flow/flow_model.h"

#include <ATen/ATen.h>

#include "scenarios/energy_flow/flow_stage.h"
#include "scenarios/runner/carried_state.h"
#include "src/common/error.h"

namespace twinbench::energy_flow {
namespace {

class FlowRun : public TrainingRun {
 public:
  explicit FlowRun(FlowState state) : state_(std::move(state)) {}

  NamedTensors state() override { return copies_of(carried_state()); }
  void set_state(const NamedTensors& given) override { put_in_place(carried_state(), given); }
  std::optional<std::int64_t> item_axis(const std::string& tensor) const override {
    return tensor == "hidden" || tensor == "next_hidden" ? 1 : 0;
  }
  std::int64_t items() const override { return state_.flows(); }

 protected:
  NamedTensors carried_state() const {
    return {{"position", state_.position}, {"energy", state_.energy}, {"hidden", state_.hidden}};
  }
  FlowState state_;
};

class BatchedRun final : public FlowRun {
 public:
  BatchedRun(const ScenarioConfig& config, const RunSetting& setting, FlowState state) : FlowRun(std::move(state)) {
    const auto stage = [&](const char* id) { return Stage(id, config, items(), setting); };
    neuron_ =
        stage(kNeuron).make(setting.variant, {{"position", state_.position}, {"energy", state_.energy.unsqueeze(1)}});
    features_ = wired(*neuron_, "features");
    carrier_ = stage(kCarrier).make(setting.variant,
                                    {{"features", features_}, {"energy", state_.energy}, {"hidden", state_.hidden}});
    carried_ = wired(*carrier_, "output");
    next_hidden_ = wired(*carrier_, "next_hidden");
    heads_ = stage(kHeads).make(setting.variant, {{"carried", carried_},
                                                  {"position", state_.position},
                                                  {"sample_key", state_.sample_key},
                                                  {"local_id", state_.local_id}});
    raw_ = wired(*heads_, "raw");
    energy_ = wired(*heads_, "energy");
  }
  void step() override {
    neuron_->run();
    carrier_->run();
    heads_->run();
    state_.position.copy_(raw_);
    state_.energy.copy_(energy_);
    state_.hidden.copy_(next_hidden_);
  }
  NamedTensors outputs() override {
    NamedTensors all = {{"features", features_}, {"carried", carried_}, {"next_hidden", next_hidden_}};
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
      throw Error(ErrorKind::kInternal, "output " + output, "moves between runs",
                  "an optimized variant writes one contiguous buffer");
    return first;
  }
  std::unique_ptr<Runnable> neuron_, carrier_, heads_;
  at::Tensor features_, carried_, next_hidden_, raw_, energy_;
};

class PerFlowRun final : public FlowRun {
 public:
  PerFlowRun(const ScenarioConfig& config, const RunSetting& setting, FlowState state) : FlowRun(std::move(state)) {
    const auto options = state_.position.options();
    const Stage neuron(kNeuron, config, 1, setting), carrier(kCarrier, config, 1, setting),
        heads(kHeads, config, 1, setting);
    features_ = at::empty({items(), config.sizes.at("neuron_output")}, options);
    carried_ = at::empty({items(), config.sizes.at("carrier_hidden")}, options);
    for (std::int64_t f = 0; f < items(); ++f) {
      const auto row = [f](const at::Tensor& tensor) { return tensor.narrow(0, f, 1); };
      One one;
      // Each flow's own buffers, gathered from the shared ones before a step.
      one.shared_position = row(state_.position);
      one.shared_energy = row(state_.energy);
      one.shared_hidden = state_.hidden.narrow(1, f, 1);
      one.position = one.shared_position.clone();
      one.energy = one.shared_energy.clone();
      one.hidden = one.shared_hidden.contiguous().clone();
      one.features = row(features_);
      one.carried = row(carried_);
      one.neuron = neuron.make(Variant::kBaseline, {{"position", one.position}, {"energy", one.energy.unsqueeze(1)}});
      one.carrier = carrier.make(Variant::kBaseline,
                                 {{"features", one.features}, {"energy", one.energy}, {"hidden", one.hidden}});
      one.heads = heads.make(Variant::kBaseline, {{"carried", one.carried},
                                                  {"position", one.position},
                                                  {"sample_key", row(state_.sample_key)},
                                                  {"local_id", row(state_.local_id)}});
      flows_.push_back(std::move(one));
    }
  }
  void step() override {
    for (auto& one : flows_) {
      one.position.copy_(one.shared_position);
      one.energy.copy_(one.shared_energy);
      one.hidden.copy_(one.shared_hidden);
      one.neuron->run();
      one.features.copy_(one.neuron->outputs()["features"]);
      one.carrier->run();
      const auto carried = one.carrier->outputs();
      one.carried.copy_(carried["output"]);
      one.shared_hidden.copy_(carried["next_hidden"]);
      one.heads->run();
      const auto decided = one.heads->outputs();
      one.shared_position.copy_(decided["raw"]);
      one.shared_energy.copy_(decided["energy"]);
    }
  }
  NamedTensors outputs() override {
    NamedTensors all = {{"features", features_}, {"carried", carried_}, {"next_hidden", state_.hidden}};
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
    at::Tensor position, energy, hidden, shared_position, shared_energy, shared_hidden, features, carried;
    std::unique_ptr<Runnable> neuron, carrier, heads;
  };
  at::Tensor features_, carried_;
  std::vector<One> flows_;
};

}  // namespace

std::unique_ptr<TrainingRun> make_flow_run(const ScenarioConfig& config, const RunSetting& setting, FlowState state) {
  if (setting.variant == Variant::kBaseline) return std::make_unique<PerFlowRun>(config, setting, std::move(state));
  return std::make_unique<BatchedRun>(config, setting, std::move(state));
}

}  // namespace twinbench::energy_flow

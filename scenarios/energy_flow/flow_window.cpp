// One micro-batch is six runnables: forward and backward of three components, with copies between them.
#include "scenarios/energy_flow/flow_window.h"

#include <ATen/ATen.h>

#include "scenarios/energy_flow/flow_stage.h"
#include "scenarios/runner/carried_state.h"
#include "src/common/error.h"
#include "src/draws.h"
#include "src/inputs.h"

namespace twinbench::energy_flow {
namespace {

constexpr std::uint32_t kEnergyTarget = 30, kPositionTarget = 31;  // places in the stream of drawn data

struct Model {
  const char* id;
  std::string prefix;  // of its parameters' names: "carrier."
};
const Model kModels[] = {{kNeuron, "neuron."}, {kCarrier, "carrier."}, {kHeads, "heads."}};

// Everything of one micro-batch of so many flows: inputs, runnables and what lies between them.
class MicroBatch {
 public:
  MicroBatch(const ScenarioConfig& config, const RunSetting& setting, const std::vector<Stage>& stages,
             const FlowState& all, std::int64_t count)
      : own_(all.first(count, setting.dtype, setting.device)) {
    const auto options = own_.position.options();
    features_ = at::zeros({count, config.sizes.at("neuron_output")}, options);
    carried_ = at::zeros({count, config.sizes.at("carrier_hidden")}, options);
    const NamedTensors flow[] = {{{"position", own_.position}, {"energy", own_.energy.unsqueeze(1)}},
                                 {{"features", features_}, {"energy", own_.energy}, {"hidden", own_.hidden}},
                                 {{"carried", carried_},
                                  {"position", own_.position},
                                  {"sample_key", own_.sample_key},
                                  {"local_id", own_.local_id}}};
    for (std::size_t i = 0; i < stages.size(); ++i) {
      Stage stage = stages[i];
      stage.setting.input_case.sizes["flows"] = count;
      forward_.push_back(stage.make(setting.variant, flow[i]));
      // Gradients of outputs are zero, but for those that backward() fills.
      auto with_gradients = flow[i];
      auto backward = stage.setting;
      backward.input_case.pass = Pass::kBackward;
      const auto& signature = stage.component->spec.signature;
      backward = completed(signature, backward);
      NamedTensors gradients;
      for (const auto& input : inputs_of(signature, backward)) {
        if (!input.name.starts_with("grad_")) continue;
        gradients.set(input.name, at::zeros(extents(input.shape, backward), options));
        with_gradients.set(input.name, gradients[input.name]);
      }
      given_.push_back(gradients);
      backward_.push_back(stage.make(setting.variant, with_gradients, Pass::kBackward));
    }
  }

  // Flows from `begin` on. Returns the loss of these flows, a sum that the window divides by.
  at::Tensor run(const FlowState& all, const at::Tensor& energy_target, const at::Tensor& position_target,
                 std::int64_t begin, std::int64_t of_window) {
    const auto count = own_.flows();
    const auto rows = [&](const at::Tensor& tensor) { return tensor.narrow(0, begin, count); };
    own_.position.copy_(rows(all.position));
    own_.energy.copy_(rows(all.energy));
    own_.hidden.copy_(all.hidden.narrow(1, begin, count));
    own_.sample_key.copy_(rows(all.sample_key));
    own_.local_id.copy_(rows(all.local_id));
    forward_[0]->run();
    features_.copy_(forward_[0]->outputs()["features"]);
    forward_[1]->run();
    carried_.copy_(forward_[1]->outputs()["output"]);
    forward_[2]->run();
    results = forward_[2]->outputs();
    at::Tensor energy = given_[2]["grad_energy"], raw = given_[2]["grad_raw"];
    at::sub_out(energy, results["energy"], rows(energy_target));
    at::sub_out(raw, results["raw"], rows(position_target));
    const auto loss = energy.square().sum().add(raw.square().sum()).mul(0.5 / static_cast<double>(of_window));
    energy.div_(static_cast<double>(of_window));
    raw.div_(static_cast<double>(of_window));
    backward_[2]->run();
    given_[1]["grad_output"].copy_(backward_[2]->outputs()["grad_carried"]);
    backward_[1]->run();
    given_[0]["grad_features"].copy_(backward_[1]->outputs()["grad_features"]);
    backward_[0]->run();
    return loss;
  }
  NamedTensors gradients_of(std::size_t model) { return backward_[model]->outputs(); }
  std::int64_t flows() const { return own_.flows(); }
  NamedTensors results;

 private:
  FlowState own_;
  at::Tensor features_, carried_;
  std::vector<NamedTensors> given_;
  std::vector<std::unique_ptr<Runnable>> forward_, backward_;
};

class FlowWindow final : public WindowRun {
 public:
  FlowWindow(const ScenarioConfig& config, const RunSetting& setting, FlowState state)
      : config_(config), setting_(setting), state_(std::move(state)) {
    const auto flows = state_.flows();
    const auto target = [&](at::IntArrayRef shape, std::uint32_t number) {
      return draws::drawn("normal", shape, config.seed, number, 0.5).to(state_.position.options());
    };
    energy_target_ = target({flows}, kEnergyTarget);
    position_target_ = target({flows, 3}, kPositionTarget);
    for (const auto& model : kModels) {
      stages_.emplace_back(model.id, config, 1, setting);
      auto backward = stages_.back().setting;
      backward.input_case.pass = Pass::kBackward;
      const auto& signature = stages_.back().component->spec.signature;
      for (const auto& output : outputs_of(signature, completed(signature, backward))) {
        const auto name = output.name.substr(5);  // grad_
        if (!stages_.back().weights.contains(name)) continue;
        parameters_.set(model.prefix + name, stages_.back().weights[name]);
        gradients_.set(model.prefix + name, at::zeros_like(stages_.back().weights[name]));
      }
    }
    loss_ = at::zeros({}, state_.position.options());
  }

  void begin_window() override {
    for (const auto& [name, tensor] : gradients_) tensor.zero_();
    loss_.zero_();
    batches_.clear();  // set-up packs the weights, which the last window has changed
  }
  void micro_step(std::int64_t begin, std::int64_t count) override {
    if (count == 0) return;
    if (begin < 0 || count < 0 || begin + count > items())
      throw Error(ErrorKind::kOutOfRange, "micro_step", std::to_string(begin) + " + " + std::to_string(count),
                  "the window has " + std::to_string(items()) + " flows");
    const bool keeps = setting_.variant == Variant::kBaseline;
    if (batches_.empty() || keeps || batches_.back()->flows() != count) {
      if (!keeps) batches_.clear();
      batches_.push_back(std::make_unique<MicroBatch>(config_, setting_, stages_, state_, count));
    }
    auto& batch = *batches_.back();
    loss_.add_(batch.run(state_, energy_target_, position_target_, begin, items()));
    if (keeps) loss_.item<double>();
    for (std::size_t i = 0; i < stages_.size(); ++i)
      for (const auto& [name, tensor] : batch.gradients_of(i)) {
        const auto parameter = kModels[i].prefix + name.substr(5);
        if (gradients_.contains(parameter)) gradients_[parameter].add_(tensor);
      }
    results_ = batch.results;
  }
  void finish_window() override {
    const double rate = config_.options.at("learning_rate");
    for (const auto& [name, tensor] : parameters_) tensor.sub_(gradients_[name], rate);
    if (setting_.variant == Variant::kBaseline) batches_.clear();
  }
  NamedTensors gradients() override { return gradients_; }
  NamedTensors parameters() override { return parameters_; }

  NamedTensors state() override { return copies_of(parameters_); }
  void set_state(const NamedTensors& given) override { put_in_place(parameters_, given); }
  NamedTensors outputs() override { return results_; }
  std::optional<std::int64_t> item_axis(const std::string& tensor) const override {
    if (results_.contains(tensor)) return 0;
    return std::nullopt;
  }
  std::int64_t items() const override { return state_.flows(); }
  Readings losses() override { return {{"loss", loss_.item<double>()}}; }

 private:
  const ScenarioConfig config_;
  const RunSetting setting_;
  FlowState state_;
  at::Tensor energy_target_, position_target_, loss_;
  std::vector<Stage> stages_;
  NamedTensors parameters_, gradients_, results_;
  std::vector<std::unique_ptr<MicroBatch>> batches_;
};

}  // namespace

std::unique_ptr<WindowRun> make_flow_window(const ScenarioConfig& config, const RunSetting& setting, FlowState state) {
  return std::make_unique<FlowWindow>(config, setting, std::move(state));
}

}  // namespace twinbench::energy_flow

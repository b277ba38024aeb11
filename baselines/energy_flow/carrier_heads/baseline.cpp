// Baseline of energy_flow.carrier_heads: one flow at a time, every head its own small products, the spawn test read on
// the host.
#include <ATen/ATen.h>

#include <array>
#include <cmath>

#include "baselines/common/tape.h"
#include "baselines/energy_flow/common/exploration.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

class Baseline : public TapeBaseline {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting),
        flows_(setting.size("flows")),
        gate_(setting.on("gate")),
        noise_(setting),
        step_(static_cast<std::int64_t>(setting.option("step"))),
        scale_(scheduled_scale(setting)),
        sample_key_(on_host("sample_key")),
        local_id_(on_host("local_id")) {
    if (backward_) {
      for (const auto& output : setting.signature->outputs)  // as the steps have them: [1, 1] or [1, 3] a flow
        if (output.gradient)
          gradients_.set(output.name,
                         inputs["grad_" + output.name].reshape({flows_, output.shape.size() == 1 ? 1 : 3}));
      make_leaves(gate_ ? std::vector<std::string>{} : std::vector<std::string>{"child_weight", "child_bias"});
      return;
    }
    for (const auto& output : outputs_of(*setting.signature, setting))
      results_.set(output.name, at::empty(extents(output.shape, setting), inputs_["carried"].options()));
    spawn_count_ = at::empty({flows_}, at::kInt);
  }

  NamedTensors outputs() override {
    NamedTensors values = TapeBaseline::outputs();
    if (!backward_) values.set("spawn_count", spawn_count_.to(inputs_["carried"].device()));
    return values;
  }

 private:
  struct Step {
    at::Tensor energy;                    // [1, 1]
    at::Tensor displacement, delta, raw;  // [1, 3]
    at::Tensor spawn_measure;             // [] in movement mode, [1, 1] in gate mode
    at::Tensor child_energy;              // [1, 1]
    std::int64_t spawn_count;
  };

  void compute() override {
    const auto carried = inputs_["carried"].split(1), position = inputs_["position"].split(1);
    for (std::int64_t f = 0; f < flows_; ++f) {
      const Step step = forward(f, carried[f], position[f]);
      const std::pair<const char*, const at::Tensor&> values[] = {
          {"energy", step.energy}, {"displacement", step.displacement},   {"delta", step.delta},
          {"raw", step.raw},       {"spawn_measure", step.spawn_measure}, {"child_energy", step.child_energy}};
      for (const auto& [name, value] : values) {
        if (backward_ && gradients_.contains(name)) root(value, gradients_[name].narrow(0, f, 1));
        if (backward_) continue;
        const at::Tensor row = results_[name].select(0, f);
        row.copy_(value.view(row.sizes()));
      }
      if (!backward_) spawn_count_.mutable_data_ptr<std::int32_t>()[f] = static_cast<std::int32_t>(step.spawn_count);
    }
  }

  // carried [1, hidden], position [1, 3].
  Step forward(std::int64_t flow, const at::Tensor& carried, const at::Tensor& position) const {
    Step step;
    step.energy = at::nan_to_num(at::tanh(head("energy", carried)), 0.0);
    step.displacement = head("displacement", carried);
    step.delta = at::clamp(at::mul(step.displacement, scale_), -0.5, 0.5);
    step.raw = at::add(position, step.delta);
    at::Tensor moved = step.delta;
    if (noise_.on()) {
      const auto key = [flow](const at::Tensor& keys) { return keys.const_data_ptr<std::int64_t>()[flow]; };
      std::array<float, 3> values = noise_.draw(key(sample_key_), key(local_id_), step_);
      const at::Tensor drawn = at::from_blob(values.data(), {1, 3}, at::kFloat).to(position.options());
      step.raw = at::add(step.raw, drawn);
      if (!gate_) moved = at::add(moved, drawn);
    }
    gate_ ? spawn_by_gate(step, carried) : spawn_by_movement(step, moved);
    return step;
  }

  at::Tensor product(const std::string& layer, const at::Tensor& x) const {
    return linear(x, layer + "_weight", layer + "_bias");
  }

  // hidden layer, GELU, output layer: three operators.
  at::Tensor head(const std::string& name, const at::Tensor& x) const {
    return product(name + "_out", at::gelu(product(name + "_hidden", x)));
  }

  void spawn_by_movement(Step& step, const at::Tensor& moved) const {
    step.spawn_measure = at::linalg_vector_norm(moved.detach());
    const double length = step.spawn_measure.item<double>();  // the sin: the host waits for every flow
    const double threshold = setting_.option("movement_threshold");
    step.spawn_count = length > threshold ? at_most(std::floor(length / threshold) - 1) : 0;
    step.child_energy = step.energy;
  }

  void spawn_by_gate(Step& step, const at::Tensor& carried) const {
    step.spawn_measure = at::sigmoid(head("gate", carried.detach()));
    const double gate = step.spawn_measure.item<double>();
    const double threshold = setting_.option("gate_threshold"), most = setting_.option("most_spawned");
    step.spawn_count = gate > threshold ? at_most(std::floor((gate - threshold) / (1 - threshold) * most) + 1) : 0;
    step.child_energy = at::div(at::tanh(product("child", carried)), step.spawn_count + 1);
  }

  std::int64_t at_most(double count) const {
    return static_cast<std::int64_t>(std::min(setting_.option("most_spawned"), count));
  }

  const std::int64_t flows_;
  const bool gate_;
  const ExplorationNoise noise_;
  const std::int64_t step_;
  const double scale_;  // lambda at this global step
  const at::Tensor &sample_key_, &local_id_;
  at::Tensor spawn_count_;
  NamedTensors gradients_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::carrier_heads

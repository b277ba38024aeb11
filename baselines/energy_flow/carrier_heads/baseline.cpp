// energy_flow.carrier_heads, naive: one flow at a time, every head its own small products, the spawn test read on the host.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <cmath>

#include "baselines/common/layers.h"
#include "src/common/philox.h"
#include "src/energy_flow/carrier_heads/shape.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

using energy_flow::carrier_heads::HeadsOptions;
using energy_flow::carrier_heads::HeadsShape;

const std::array<const char*, 14> kWeights = {
    "energy_hidden_weight", "energy_hidden_bias", "energy_out_weight", "energy_out_bias",
    "displacement_hidden_weight", "displacement_hidden_bias", "displacement_out_weight", "displacement_out_bias",
    "child_weight", "child_bias",  // the rest never receives a gradient
    "gate_hidden_weight", "gate_hidden_bias", "gate_out_weight", "gate_out_bias"};
constexpr std::size_t kTrainedWeights = 10;

double scheduled_scale(const HeadsOptions& o) {
  if (o.global_step < energy_flow::carrier_heads::kWarmUp) return o.scale;
  double scale = o.scale;
  for (std::int64_t k = energy_flow::carrier_heads::kWarmUp; k + energy_flow::carrier_heads::kInterval <= o.global_step; k += energy_flow::carrier_heads::kInterval)
    scale *= energy_flow::carrier_heads::kDecay;
  return std::max(scale, o.smallest_scale);
}

class NaiveHeads : public Runnable {
 public:
  NaiveHeads(const NamedTensors& inputs, const Setting& setting)
      : shape_(energy_flow::carrier_heads::checked_heads_shape(inputs, setting)),
        options_(energy_flow::carrier_heads::checked_heads_options(setting)),
        round_(setting.dtype == Dtype::kBf16),
        scale_(scheduled_scale(options_)),
        carried_(inputs["carried"].contiguous()),
        position_(inputs["position"].contiguous()),
        sample_key_(inputs["sample_key"].cpu().contiguous()),
        local_id_(inputs["local_id"].cpu().contiguous()) {
    for (const char* name : kWeights) {
      const bool operand = round_ && std::string(name).ends_with("weight");
      weights_.set(name, (operand ? rounded_to_bf16(inputs[name]) : inputs[name]).contiguous());
    }
    const auto make = [&](at::IntArrayRef shape) { return at::empty(shape, carried_.options()); };
    results_ = {{"energy", make({shape_.flows})},   {"displacement", make({shape_.flows, 3})},
                {"delta", make({shape_.flows, 3})}, {"raw", make({shape_.flows, 3})},
                {"spawn_measure", make({shape_.flows})}, {"child_energy", make({shape_.flows})}};
    spawn_count_ = at::empty({shape_.flows}, at::kInt);
  }

  void run() override {
    const at::NoGradGuard no_grad;
    const WithoutOneDnn plain_gelu;
    std::int32_t* count = spawn_count_.mutable_data_ptr<std::int32_t>();
    for (std::int64_t f = 0; f < shape_.flows; ++f) {
      const Step step = forward(f, carried_.narrow(0, f, 1), position_.narrow(0, f, 1));
      count[f] = static_cast<std::int32_t>(step.spawn_count);
      store("energy", f, step.energy), store("displacement", f, step.displacement), store("delta", f, step.delta);
      store("raw", f, step.raw), store("spawn_measure", f, step.spawn_measure);
      store("child_energy", f, step.child_energy);
    }
  }

  NamedTensors outputs() override {
    NamedTensors values = results_;
    values.set("spawn_count", spawn_count_.to(carried_.device()));
    return values;
  }

 protected:
  struct Step {
    at::Tensor energy;                    // [1, 1]
    at::Tensor displacement, delta, raw;  // [1, 3]
    at::Tensor spawn_measure;             // [] in movement mode, [1, 1] in gate mode
    at::Tensor child_energy;              // [1, 1]
    std::int64_t spawn_count;
  };

  // carried [1, hidden], position [1, 3].
  Step forward(std::int64_t flow, const at::Tensor& carried, const at::Tensor& position) const {
    Step step;
    step.energy = at::nan_to_num(at::tanh(head("energy", carried)), 0.0);
    step.displacement = head("displacement", carried);
    step.delta = at::clamp(at::mul(step.displacement, scale_), -0.5, 0.5);
    step.raw = at::add(position, step.delta);
    at::Tensor moved = step.delta;
    if (options_.noise != 0) {
      std::array<float, 3> values = noise(flow);
      const at::Tensor drawn = at::from_blob(values.data(), {1, 3}, at::kFloat).to(position.options());
      step.raw = at::add(step.raw, drawn);
      if (!options_.gate) moved = at::add(moved, drawn);
    }
    if (options_.gate)
      spawn_by_gate(step, carried);
    else
      spawn_by_movement(step, moved);
    return step;
  }

  HeadsShape shape_;
  HeadsOptions options_;
  bool round_;
  double scale_;  // lambda at this global step
  at::Tensor carried_, position_;
  NamedTensors weights_;

 private:
  at::Tensor product(const std::string& layer, const at::Tensor& x) const {
    return baseline_linear(x, weights_[layer + "_weight"], weights_[layer + "_bias"], round_);
  }

  // hidden layer, GELU, output layer: three operators.
  at::Tensor head(const std::string& name, const at::Tensor& x) const {
    return product(name + "_out", at::gelu(product(name + "_hidden", x)));
  }

  std::array<float, 3> noise(std::int64_t flow) const {
    const auto word = [flow](const at::Tensor& t) {
      return static_cast<std::uint32_t>(t.const_data_ptr<std::int64_t>()[flow]);
    };
    const PhiloxWords words = philox(options_.seed, word(local_id_), word(sample_key_), options_.attempt,
                                     philox_tag(PhiloxStream::kExplorationNoise, options_.step));
    const NormalPair xy = philox_normal_pair(words.w[0], words.w[1]);
    const NormalPair z = philox_normal_pair(words.w[2], words.w[3]);
    const float deviation = static_cast<float>(options_.noise);
    return {deviation * xy.cosine, deviation * xy.sine, options_.noise_on_z ? deviation * z.cosine : 0.0f};
  }

  void spawn_by_movement(Step& step, const at::Tensor& moved) const {
    step.spawn_measure = at::linalg_vector_norm(moved.detach());
    const double length = step.spawn_measure.item<double>();  // the sin: the host waits for every flow
    const double threshold = options_.movement_threshold;
    step.spawn_count = 0;
    if (length > threshold)
      step.spawn_count = std::min<std::int64_t>(options_.most_spawned, std::floor(length / threshold) - 1);
    step.child_energy = step.energy;
  }

  void spawn_by_gate(Step& step, const at::Tensor& carried) const {
    step.spawn_measure = at::sigmoid(head("gate", carried.detach()));
    const double gate = step.spawn_measure.item<double>();
    const double threshold = options_.gate_threshold, most = options_.most_spawned;
    step.spawn_count = 0;
    if (gate > threshold)
      step.spawn_count = std::min<std::int64_t>(most, std::floor((gate - threshold) / (1 - threshold) * most) + 1);
    step.child_energy = at::div(at::tanh(product("child", carried)), step.spawn_count + 1);
  }

  void store(const char* name, std::int64_t flow, const at::Tensor& value) {
    const at::Tensor row = results_[name].select(0, flow);
    row.copy_(value.view(row.sizes()));
  }

  at::Tensor sample_key_, local_id_, spawn_count_;
  NamedTensors results_;
};

// The same forward on the tape, one node a flow and operator, replayed by autograd.
class NaiveHeadsBackward final : public NaiveHeads {
 public:
  NaiveHeadsBackward(const NamedTensors& inputs, const Setting& setting) : NaiveHeads(inputs, setting) {
    leaves_ = {carried_, position_};
    for (std::size_t i = 0; i < kTrainedWeights; ++i) leaves_.push_back(weights_[kWeights[i]]);
    for (auto& leaf : leaves_) leaf = leaf.detach().clone().requires_grad_(true);
    carried_ = leaves_[0], position_ = leaves_[1];
    for (std::size_t i = 0; i < kTrainedWeights; ++i) weights_.set(kWeights[i], leaves_[2 + i]);
    for (const auto& leaf : leaves_) gradients_.push_back(at::zeros_like(leaf));
    const std::int64_t flows = shape_.flows;
    for (const char* name : {"grad_energy", "grad_displacement", "grad_delta", "grad_raw", "grad_child_energy"})
      given_.push_back(inputs[name].contiguous().reshape({flows, inputs[name].dim() == 1 ? 1 : 3}));
  }

  void run() override {
    if (shape_.flows == 0) return;
    const WithoutOneDnn plain_gelu;
    std::vector<at::Tensor> results, grads;
    std::vector<std::vector<at::Tensor>> given;
    for (const auto& tensor : given_) given.push_back(tensor.split(1));
    const auto carried = carried_.split(1), position = position_.split(1);
    for (std::int64_t f = 0; f < shape_.flows; ++f) {
      const Step step = forward(f, carried[f], position[f]);
      results.insert(results.end(), {step.energy, step.displacement, step.delta, step.raw, step.child_energy});
      for (const auto& tensor : given) grads.push_back(tensor[f]);
    }
    const auto found = torch::autograd::grad(results, leaves_, grads, std::nullopt, false, /*allow_unused=*/true);
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i].defined()) gradients_[i] = found[i];  // movement mode leaves the child head out: its zeros stay
  }

  NamedTensors outputs() override {
    NamedTensors values = {{"grad_carried", gradients_[0].contiguous()}, {"grad_position", gradients_[1].contiguous()}};
    for (std::size_t i = 0; i < kTrainedWeights; ++i)
      values.set(std::string("grad_") + kWeights[i], gradients_[2 + i].contiguous());
    return values;
  }

 private:
  std::vector<at::Tensor> leaves_, gradients_, given_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  if (setting.input_case.pass == Pass::kBackward) return std::make_unique<NaiveHeadsBackward>(inputs, setting);
  return std::make_unique<NaiveHeads>(inputs, setting);
}

}  // namespace twinbench::energy_flow::carrier_heads

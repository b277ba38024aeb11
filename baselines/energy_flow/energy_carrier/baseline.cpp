// energy_flow.energy_carrier, naive: one flow at a time, hidden state stored [flow][layer][channel] and copied out and in.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "baselines/common/layers.h"
#include "src/energy_flow/energy_carrier/shape.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

using energy_flow::energy_carrier::CarrierShape;
using energy_flow::energy_carrier::checked_carrier_shape;
using energy_flow::energy_carrier::kCarrierGuardLimit;
using energy_flow::energy_carrier::layer_name;

struct LayerWeights {
  at::Tensor weight_input, weight_hidden, bias_input, bias_hidden;
};

// NaN becomes 0, infinities and large values the limit: two dispatches.
at::Tensor guarded(const at::Tensor& values) {
  return at::clamp(at::nan_to_num(values, 0.0), -kCarrierGuardLimit, kCarrierGuardLimit);
}

class NaiveCarrier : public Runnable {
 public:
  NaiveCarrier(const NamedTensors& inputs, const Setting& setting)
      : shape_(checked_carrier_shape(inputs, setting)),
        round_(setting.dtype == Dtype::kBf16),
        features_(inputs["features"].contiguous()),
        energy_(inputs["energy"].contiguous().reshape({shape_.flows, 1})),
        stored_hidden_(inputs["hidden"].transpose(0, 1).contiguous()) {
    for (std::int64_t l = 0; l < shape_.layers; ++l)
      layers_.push_back({weight(inputs[layer_name("weight_input", l)]),
                         weight(inputs[layer_name("weight_hidden", l)]),
                         inputs[layer_name("bias_input", l)].contiguous(),
                         inputs[layer_name("bias_hidden", l)].contiguous()});
    next_stored_hidden_ = at::empty_like(stored_hidden_);
    output_ = at::empty({shape_.flows, shape_.hidden}, features_.options());
    guard_hits_ = at::empty({shape_.flows}, features_.options().dtype(at::kInt));
  }

  void run() override {
    const at::NoGradGuard no_grad;
    for (std::int64_t f = 0; f < shape_.flows; ++f) {
      const at::Tensor hidden = stored_hidden_.select(0, f).clone();  // gather: one copy
      const Step step = forward(features_.narrow(0, f, 1), energy_.narrow(0, f, 1), hidden);
      next_stored_hidden_.select(0, f).copy_(step.next_hidden);  // scatter: one copy
      output_.select(0, f).copy_(step.output.select(0, 0));
      guard_hits_.select(0, f).copy_(step.guard_hits);
    }
  }

  NamedTensors outputs() override {
    return {{"output", output_},
            {"next_hidden", next_stored_hidden_.transpose(0, 1).contiguous()},
            {"guard_hits", guard_hits_}};
  }

 protected:
  struct Step {
    at::Tensor output;       // [1, hidden]
    at::Tensor next_hidden;  // [layers, hidden]
    at::Tensor guard_hits;   // [], int64
  };

  // features [1, features], energy [1, 1], hidden [layers, hidden].
  Step forward(const at::Tensor& features, const at::Tensor& energy, const at::Tensor& hidden) const {
    const at::Tensor raw_input = at::cat({features, energy}, 1);
    const at::Tensor guard_hits = at::add(at::sum(at::ne(raw_input, raw_input)), at::sum(at::ne(hidden, hidden)));
    at::Tensor x = guarded(raw_input);
    const at::Tensor h = guarded(hidden);
    std::vector<at::Tensor> next;
    for (std::int64_t l = 0; l < shape_.layers; ++l) {
      const at::Tensor h_l = h.narrow(0, l, 1);
      x = cell(layers_[l], x, h_l);
      next.push_back(x);
    }
    return {guarded(x), guarded(at::cat(next, 0)), guard_hits};
  }

  CarrierShape shape_;
  bool round_;
  at::Tensor features_, energy_;  // [flows, features], [flows, 1]
  at::Tensor stored_hidden_;      // [flows, layers, hidden]: what the origin stores
  std::vector<LayerWeights> layers_;

 private:
  at::Tensor weight(const at::Tensor& values) const {
    return (round_ ? rounded_to_bf16(values) : values).contiguous();
  }

  at::Tensor cell(const LayerWeights& w, const at::Tensor& x, const at::Tensor& h) const {
    const std::int64_t width = shape_.hidden;
    const at::Tensor from_input = baseline_linear(x, w.weight_input, w.bias_input, round_);
    const at::Tensor from_hidden = baseline_linear(h, w.weight_hidden, w.bias_hidden, round_);
    const auto block = [width](const at::Tensor& t, std::int64_t i) { return t.narrow(1, i * width, width); };
    const at::Tensor reset = at::sigmoid(at::add(block(from_input, 0), block(from_hidden, 0)));
    const at::Tensor update = at::sigmoid(at::add(block(from_input, 1), block(from_hidden, 1)));
    const at::Tensor candidate = at::tanh(at::add(block(from_input, 2), at::mul(reset, block(from_hidden, 2))));
    return at::add(at::mul(at::rsub(update, 1), candidate), at::mul(update, h));
  }

  at::Tensor next_stored_hidden_, output_, guard_hits_;
};

// The same forward on the tape, one node a flow and operator, replayed by autograd.
class NaiveCarrierBackward final : public NaiveCarrier {
 public:
  NaiveCarrierBackward(const NamedTensors& inputs, const Setting& setting) : NaiveCarrier(inputs, setting) {
    grad_output_ = inputs["grad_output"].contiguous();
    grad_next_hidden_ = inputs["grad_next_hidden"].transpose(0, 1).contiguous();
    leaves_ = {features_, energy_, stored_hidden_};
    for (auto& w : layers_) leaves_.insert(leaves_.end(), {w.weight_input, w.weight_hidden, w.bias_input, w.bias_hidden});
    for (auto& leaf : leaves_) leaf = leaf.detach().clone().requires_grad_(true);
    features_ = leaves_[0], energy_ = leaves_[1], stored_hidden_ = leaves_[2];
    for (std::size_t l = 0; l < layers_.size(); ++l)
      layers_[l] = {leaves_[3 + 4 * l], leaves_[4 + 4 * l], leaves_[5 + 4 * l], leaves_[6 + 4 * l]};
    for (const auto& leaf : leaves_) gradients_.push_back(at::zeros_like(leaf));
  }

  void run() override {
    if (shape_.flows == 0) return;
    std::vector<at::Tensor> results, grads;
    const auto features = features_.split(1), energy = energy_.split(1);
    const auto hidden = stored_hidden_.unbind(0), grad_next = grad_next_hidden_.unbind(0);
    const auto grad_output = grad_output_.split(1);
    for (std::int64_t f = 0; f < shape_.flows; ++f) {
      const Step step = forward(features[f], energy[f], hidden[f].clone());
      results.insert(results.end(), {step.output, step.next_hidden});
      grads.insert(grads.end(), {grad_output[f], grad_next[f]});
    }
    gradients_ = torch::autograd::grad(results, leaves_, grads);
  }

  NamedTensors outputs() override {
    NamedTensors values = {{"grad_features", gradients_[0].contiguous()},
                     {"grad_energy", gradients_[1].reshape({shape_.flows})},
                     {"grad_hidden", gradients_[2].transpose(0, 1).contiguous()}};
    const char* stems[] = {"grad_weight_input", "grad_weight_hidden", "grad_bias_input", "grad_bias_hidden"};
    for (std::int64_t l = 0; l < shape_.layers; ++l)
      for (int i = 0; i < 4; ++i) values.set(layer_name(stems[i], l), gradients_[3 + 4 * l + i].contiguous());
    return values;
  }

 private:
  at::Tensor grad_output_, grad_next_hidden_;  // [flows, hidden], [flows, layers, hidden]
  std::vector<at::Tensor> leaves_, gradients_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  if (setting.input_case.pass == Pass::kBackward) return std::make_unique<NaiveCarrierBackward>(inputs, setting);
  return std::make_unique<NaiveCarrier>(inputs, setting);
}

}  // namespace twinbench::energy_flow::energy_carrier

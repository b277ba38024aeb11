// Baseline of energy_flow.energy_carrier: one flow at a time, hidden state stored [flow][layer][channel] and copied out
// and in.
#include <ATen/ATen.h>

#include "baselines/common/tape.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

constexpr double kGuardLimit = 10.0;

// NaN becomes 0, infinities and large values the limit: two dispatches.
at::Tensor guarded(const at::Tensor& values) {
  return at::clamp(at::nan_to_num(values, 0.0), -kGuardLimit, kGuardLimit);
}

class Baseline : public TapeBaseline {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting), flows_(setting.size("flows")), layers_(setting.size("layers")) {
    inputs_.set("energy", inputs_["energy"].reshape({flows_, 1}));
    for (const char* state : {"hidden", "grad_next_hidden"})  // [flows, layers, hidden], as the origin has them; views
      if (inputs_.contains(state)) inputs_.set(state, inputs_[state].transpose(0, 1));
    make_leaves();
    if (backward_) return;
    const at::Tensor& hidden = inputs_["hidden"];
    results_ = {{"output", at::empty({flows_, setting.size("hidden")}, hidden.options())},
                {"next_hidden", at::empty_like(hidden)},
                {"guard_hits", at::empty({flows_}, hidden.options().dtype(at::kInt))}};
  }

  NamedTensors outputs() override {
    NamedTensors values = TapeBaseline::outputs();
    const std::string state = backward_ ? "grad_hidden" : "next_hidden";
    values.set(state, values[state].transpose(0, 1).contiguous());
    if (backward_) values.set("grad_energy", values["grad_energy"].reshape({flows_}));
    return values;
  }

 private:
  struct Step {
    at::Tensor output;       // [1, hidden]
    at::Tensor next_hidden;  // [layers, hidden]
    at::Tensor guard_hits;   // [], int64
  };

  void compute() override {
    const auto features = inputs_["features"].split(1), energy = inputs_["energy"].split(1);
    const auto hidden = inputs_["hidden"].unbind(0);
    std::vector<at::Tensor> grad_output, grad_next;
    if (backward_) grad_output = inputs_["grad_output"].split(1), grad_next = inputs_["grad_next_hidden"].unbind(0);
    for (std::int64_t f = 0; f < flows_; ++f) {
      const Step step = forward(features[f], energy[f], hidden[f].clone());  // gather: one copy
      if (backward_) {
        root(step.output, grad_output[f]), root(step.next_hidden, grad_next[f]);
        continue;
      }
      results_["next_hidden"].select(0, f).copy_(step.next_hidden);  // scatter: one copy
      results_["output"].select(0, f).copy_(step.output.select(0, 0));
      results_["guard_hits"].select(0, f).copy_(step.guard_hits);
    }
  }

  // features [1, features], energy [1, 1], hidden [layers, hidden].
  Step forward(const at::Tensor& features, const at::Tensor& energy, const at::Tensor& hidden) const {
    const at::Tensor raw_input = at::cat({features, energy}, 1);
    const at::Tensor guard_hits = at::add(at::sum(at::ne(raw_input, raw_input)), at::sum(at::ne(hidden, hidden)));
    at::Tensor x = guarded(raw_input);
    const at::Tensor h = guarded(hidden);
    std::vector<at::Tensor> next;
    for (std::int64_t l = 0; l < layers_; ++l) next.push_back(x = cell(std::to_string(l), x, h.narrow(0, l, 1)));
    return {guarded(x), guarded(at::cat(next, 0)), guard_hits};
  }

  at::Tensor cell(const std::string& layer, const at::Tensor& x, const at::Tensor& h) const {
    const std::int64_t width = h.size(1);
    const at::Tensor from_input = linear(x, "weight_input_" + layer, "bias_input_" + layer);
    const at::Tensor from_hidden = linear(h, "weight_hidden_" + layer, "bias_hidden_" + layer);
    const auto block = [width](const at::Tensor& t, std::int64_t i) { return t.narrow(1, i * width, width); };
    const at::Tensor reset = at::sigmoid(at::add(block(from_input, 0), block(from_hidden, 0)));
    const at::Tensor update = at::sigmoid(at::add(block(from_input, 1), block(from_hidden, 1)));
    const at::Tensor candidate = at::tanh(at::add(block(from_input, 2), at::mul(reset, block(from_hidden, 2))));
    return at::add(at::mul(at::rsub(update, 1), candidate), at::mul(update, h));
  }

  const std::int64_t flows_, layers_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::energy_carrier

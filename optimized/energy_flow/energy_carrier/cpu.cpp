// energy_flow.energy_carrier, optimized on the CPU: all flows at once, three products in loops of our own and one
// pointwise pass a layer, in buffers made by the constructor.
#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "kernels/energy_flow/energy_carrier/math.h"
#include "optimized/common/packing.h"
#include "optimized/common/panel_product.h"
#include "optimized/common/rows.h"
#include "optimized/common/two_halves.h"
#include "optimized/energy_flow/common/layer_parts.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

// One row of sums holds four blocks of `hidden` channels, [hidden candidate | reset | update | input candidate]: the
// hidden products fill blocks 0-2, the input products blocks 1-3, so that reset and update are summed by the product.
constexpr std::int64_t kBlocks = 4;

// Returns how many values were NaN.
template <class Real>
TWINBENCH_CPU_CLONES std::int32_t guard_row(const Real* __restrict raw, Real* __restrict guarded,
                                            Real* __restrict operand, std::int64_t width, bool round) {
  std::int32_t hits = 0;
  for (std::int64_t j = 0; j < width; ++j) {
    hits += raw[j] != raw[j] ? 1 : 0;
    guarded[j] = kernels::guard(raw[j], Real(kGuardLimit));
  }
  if (round)
    for (std::int64_t j = 0; j < width; ++j) operand[j] = kernels::round_to_bf16(guarded[j]);
  return hits;
}

// Block `i` of a row of sums, or of the summed biases, which have their own order: reset, update, then the candidate's
// input and hidden bias. Loops get one restrict pointer a block: that is what lets the compiler vectorise them.
// `operand` receives the unguarded next state that the layer above multiplies; `next` the guarded one that is stored.
template <class Real>
TWINBENCH_CPU_CLONES void gate_row(const Real* __restrict sums, const Real* __restrict bias,
                                   const Real* __restrict hidden, Real* __restrict next, Real* __restrict operand,
                                   std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) {
    const Real value = gru_channel(sums[width + j] + bias[j], sums[2 * width + j] + bias[width + j],
                                   sums[3 * width + j] + bias[2 * width + j], sums[j] + bias[3 * width + j], hidden[j])
                           .next;
    next[j] = kernels::guard(value, Real(kGuardLimit));
    operand[j] = value;
  }
}

// As gate_row, but leaves [hidden candidate sum | reset | update | candidate] in the row for the backward pass.
template <class Real>
TWINBENCH_CPU_CLONES void gate_row_kept(Real* __restrict candidate_hidden, Real* __restrict reset,
                                        Real* __restrict update, Real* __restrict candidate,
                                        const Real* __restrict bias, const Real* __restrict hidden,
                                        Real* __restrict next, Real* __restrict operand, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) {
    const Real from_hidden = candidate_hidden[j] + bias[3 * width + j];
    const Channel<Real> channel = gru_channel(reset[j] + bias[j], update[j] + bias[width + j],
                                              candidate[j] + bias[2 * width + j], from_hidden, hidden[j]);
    candidate_hidden[j] = from_hidden;
    reset[j] = channel.reset;
    update[j] = channel.update;
    candidate[j] = channel.candidate;
    next[j] = kernels::guard(channel.next, Real(kGuardLimit));
    operand[j] = channel.next;
  }
}

// Replaces the four blocks of a kept row by the gradients of their sums; grad_hidden gets the direct path only.
template <class Real>
TWINBENCH_CPU_CLONES void gate_row_backward(Real* __restrict candidate_hidden, Real* __restrict reset,
                                            Real* __restrict update, Real* __restrict candidate,
                                            const Real* __restrict hidden, const Real* __restrict grad_stored,
                                            const Real* __restrict grad_above, Real* __restrict grad_hidden,
                                            std::int64_t width, bool top) {
  for (std::int64_t j = 0; j < width; ++j) {
    const ChannelGradient<Real> grad = guarded_channel_gradient(reset[j], update[j], candidate[j], candidate_hidden[j],
                                                                hidden[j], grad_stored[j], grad_above[j], top);
    candidate_hidden[j] = grad.candidate_hidden;
    reset[j] = grad.reset_sum;
    update[j] = grad.update_sum;
    candidate[j] = grad.candidate_input;
    grad_hidden[j] = grad.hidden;
  }
}

template <class Real>
TWINBENCH_CPU_CLONES void mask_row(const Real* __restrict raw, Real* __restrict gradient, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j)
    gradient[j] = kernels::guard_gradient(raw[j], Real(kGuardLimit), gradient[j]);
}

// Weights packed for the products, biases summed, and every view a product needs, for one layer.
struct Layer {
  at::Tensor input_reset_update_t, input_candidate_t,
      hidden_t;                            // transposed: [in, 2*hidden], [in, hidden], [hidden, 3*hidden]
  at::Tensor weight_input, weight_hidden;  // [3*hidden, in]; [3*hidden, hidden] in block order 0-2
  at::Tensor biases;                       // [4, hidden]
  at::Tensor sums, hidden_sums, gate_sums, candidate_sums;  // [flows, 4*hidden], its blocks 0-2, 1-2, 3
  at::Tensor input_operand, hidden_operand, next_operand;   // [flows, in], [flows, hidden]; the layer above's input
  // Backward: what the products write, and views of the sums, which hold gradients by then.
  at::Tensor grad_weight_input, grad_weight_gates, grad_weight_candidate, grad_bias_hidden, grad_hidden, grad_below;
  at::Tensor input_sums, input_sums_t, gate_sums_t, candidate_sums_t, column_sums;
};

template <class Real>
class CpuCarrier final : public TwoHalves {
 public:
  CpuCarrier(const NamedTensors& inputs, const Setting& setting)
      : setting_(setting),
        round_(rounds_operands(setting)),
        flows_(setting.size("flows")),
        width_(setting.size("hidden")),
        input_width_(setting.size("features") + 1),
        features_(inputs["features"].contiguous()),
        energy_(inputs["energy"].contiguous()),
        hidden_(inputs["hidden"].contiguous()),
        forward_results_(zero_results(forward_of(setting))) {
    guarded_input_ = matrix(input_width_);
    guarded_hidden_ = at::empty_like(hidden_);
    hidden_operand_ = round_ ? at::empty_like(hidden_) : guarded_hidden_;
    next_hidden_ = forward_results_["next_hidden"];
    guard_hits_ = forward_results_["guard_hits"];
    at::Tensor operand = round_ ? matrix(input_width_) : guarded_input_;
    at::Tensor sums = matrix(kBlocks * width_);
    for (std::int64_t l = 0; l < setting.size("layers"); ++l) {
      Layer layer = pack(inputs, setting, std::to_string(l));
      if (setting.backward() && l > 0) sums = at::empty_like(sums);  // each layer leaves its gates there
      layer.sums = sums;
      layer.hidden_sums = blocks(sums, 0, 3);
      layer.gate_sums = blocks(sums, 1, 2);
      layer.candidate_sums = blocks(sums, 3, 1);
      layer.input_operand = operand;
      layer.hidden_operand = hidden_operand_.select(0, l);
      layer.next_operand = operand = matrix(width_);
      layers_.push_back(layer);
    }
    forward_results_.set("output", next_hidden_.select(0, setting.size("layers") - 1));
    if (setting.backward()) prepare_backward(inputs);
  }

  void run() override {
    run_forward();
    if (setting_.backward()) run_backward();
  }

  void run_forward() override {
    if (flows_ == 0) return;
    guard_inputs();
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      Layer& layer = layers_[l];
      multiply_in_panels<Real>(layer.hidden_sums, layer.hidden_operand, layer.hidden_t);
      multiply_in_panels<Real>(layer.gate_sums, layer.input_operand, layer.input_reset_update_t, /*add=*/true);
      multiply_in_panels<Real>(layer.candidate_sums, layer.input_operand, layer.input_candidate_t);
      apply_gates(l);
    }
  }

  // Five products and one pointwise pass a layer.
  void run_backward() override {
    if (flows_ == 0) return;
    for (std::size_t l = layers_.size(); l-- > 0;) {
      Layer& layer = layers_[l];
      gates_backward(l);
      sum_columns<Real>(layer.sums, layer.column_sums, 512);
      const Real* sums = data<Real>(layer.column_sums);
      std::copy_n(sums + width_, 2 * width_, data<Real>(layer.grad_bias_hidden));
      std::copy_n(sums, width_, data<Real>(layer.grad_bias_hidden) + 2 * width_);
      if (round_) round_all<Real>(layer.sums, layer.sums);
      multiply_in_panels<Real>(layer.grad_weight_input, layer.input_sums_t, layer.input_operand);
      multiply_in_panels<Real>(layer.grad_weight_gates, layer.gate_sums_t, layer.hidden_operand);
      multiply_in_panels<Real>(layer.grad_weight_candidate, layer.candidate_sums_t, layer.hidden_operand);
      multiply_in_panels<Real>(layer.grad_hidden, layer.hidden_sums, layer.weight_hidden, /*add=*/true);
      multiply_in_panels<Real>(layer.grad_below, layer.input_sums, layer.weight_input);
    }
    mask_inputs();
  }

  NamedTensors forward_outputs() override { return forward_results_; }
  std::vector<at::Tensor> kept() override {
    std::vector<at::Tensor> kept = {guarded_hidden_, layers_[0].input_operand};
    if (round_) kept.push_back(hidden_operand_);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      kept.push_back(layers_[l].sums);
      if (l > 0) kept.push_back(layers_[l].input_operand);
    }
    return kept;
  }
  NamedTensors outputs() override { return setting_.backward() ? gradients_ : forward_results_; }
  NamedTensors give_outputs() override {
    NamedTensors given = outputs();
    write_gradients_to(flows_ > 0 ? empty_results(setting_) : zero_results(setting_));
    return given;
  }

 private:
  at::Tensor matrix(std::int64_t columns) const { return at::empty({flows_, columns}, features_.options()); }
  at::Tensor blocks(const at::Tensor& sums, std::int64_t first, std::int64_t count) const {
    return sums.narrow(1, first * width_, count * width_);
  }
  // A layer's first element in a [layers, flows, hidden] tensor.
  Real* of_layer(const at::Tensor& states, std::size_t l) const {
    return data<Real>(states) + static_cast<std::int64_t>(l) * flows_ * width_;
  }
  // body(flow, offset of its row in [flows, hidden]) for every flow.
  template <class Body>
  void over_flows(std::int64_t width, Body body) const {
    at::parallel_for(0, flows_, grain(width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t f = begin; f < end; ++f) body(f, f * width_);
    });
  }

  Layer pack(const NamedTensors& inputs, const Setting& setting, const std::string& l) const {
    const auto block = [this](const at::Tensor& t, std::int64_t first, std::int64_t count) {
      return t.narrow(0, first * width_, count * width_);
    };
    const at::Tensor weight_hidden = operand_of(inputs["weight_hidden_" + l], setting);
    Layer layer;
    layer.weight_input = operand_of(inputs["weight_input_" + l], setting).contiguous();
    layer.weight_hidden = at::cat({block(weight_hidden, 2, 1), block(weight_hidden, 0, 2)}, 0);
    layer.hidden_t = layer.weight_hidden.t().contiguous();
    layer.input_reset_update_t = block(layer.weight_input, 0, 2).t().contiguous();
    layer.input_candidate_t = block(layer.weight_input, 2, 1).t().contiguous();
    layer.biases = gate_biases(inputs["bias_input_" + l], inputs["bias_hidden_" + l]);
    return layer;
  }

  void guard_inputs() {
    const std::int64_t layers = hidden_.size(0), features = input_width_ - 1;
    const Real *o = data<Real>(features_), *e = data<Real>(energy_), *h = data<Real>(hidden_);
    Real *input = data<Real>(guarded_input_), *input_operand = data<Real>(layers_[0].input_operand);
    Real *hidden = data<Real>(guarded_hidden_), *hidden_operand = data<Real>(hidden_operand_);
    std::int32_t* hits = data<std::int32_t>(guard_hits_);
    over_flows(width_ * layers, [&](std::int64_t f, std::int64_t) {
      const std::int64_t row = f * input_width_;
      hits[f] = guard_row(o + f * features, input + row, input_operand + row, features, round_);
      hits[f] += guard_row(e + f, input + row + features, input_operand + row + features, 1, round_);
      for (std::int64_t l = 0; l < layers; ++l) {
        const std::int64_t at = (l * flows_ + f) * width_;
        hits[f] += guard_row(h + at, hidden + at, hidden_operand + at, width_, round_);
      }
    });
  }

  void apply_gates(std::size_t l) {
    const Layer& layer = layers_[l];
    const Real *bias = data<Real>(layer.biases), *hidden = of_layer(guarded_hidden_, l);
    Real *sums = data<Real>(layer.sums), *next = of_layer(next_hidden_, l), *operand = data<Real>(layer.next_operand);
    const std::int64_t width = width_;
    over_flows(width, [&](std::int64_t, std::int64_t at) {
      Real* row = sums + kBlocks * at;
      if (setting_.backward())
        gate_row_kept(row, row + width, row + 2 * width, row + 3 * width, bias, hidden + at, next + at, operand + at,
                      width);
      else
        gate_row(row, bias, hidden + at, next + at, operand + at, width);
      if (round_) round_in_place(operand + at, width);
    });
  }

  // ---- backward ----------------------------------------------------------------------------------------------------

  void prepare_backward(const NamedTensors& inputs) {
    grad_output_ = inputs["grad_output"].contiguous();
    grad_next_hidden_ = inputs["grad_next_hidden"].contiguous();
    grad_input_ = matrix(input_width_);
    grad_above_ = matrix(width_);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      Layer& layer = layers_[l];
      layer.grad_below = l > 0 ? grad_above_ : grad_input_;
      layer.input_sums = blocks(layer.sums, 1, 3);
      layer.input_sums_t = layer.input_sums.t();
      layer.gate_sums_t = layer.gate_sums.t();
      layer.candidate_sums_t = blocks(layer.sums, 0, 1).t();
      layer.column_sums = at::zeros({kBlocks * width_}, features_.options());
    }
    write_gradients_to(zero_results(setting_));
  }

  void write_gradients_to(NamedTensors gradients) {
    grad_hidden_ = gradients["grad_hidden"];
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const std::string number = std::to_string(l);
      Layer& layer = layers_[l];
      const at::Tensor weight_hidden = gradients["grad_weight_hidden_" + number];
      layer.grad_weight_input = gradients["grad_weight_input_" + number];
      layer.grad_weight_gates = weight_hidden.narrow(0, 0, 2 * width_);
      layer.grad_weight_candidate = weight_hidden.narrow(0, 2 * width_, width_);
      layer.grad_hidden = grad_hidden_.select(0, static_cast<std::int64_t>(l));
      // Sums of the blocks are the biases' gradients: reset and update for both, then the candidate's own.
      gradients.set("grad_bias_input_" + number, layer.column_sums.narrow(0, width_, 3 * width_));
      layer.grad_bias_hidden = gradients["grad_bias_hidden_" + number];
    }
    gradients_ = std::move(gradients);
  }

  void gates_backward(std::size_t l) {
    const bool top = l + 1 == layers_.size();
    Real *sums = data<Real>(layers_[l].sums), *grad_hidden = of_layer(grad_hidden_, l);
    const Real *hidden = of_layer(guarded_hidden_, l), *stored = of_layer(grad_next_hidden_, l);
    const Real* above = data<Real>(top ? grad_output_ : grad_above_);
    const std::int64_t width = width_;
    over_flows(width, [&](std::int64_t, std::int64_t at) {
      Real* row = sums + kBlocks * at;
      gate_row_backward(row, row + width, row + 2 * width, row + 3 * width, hidden + at, stored + at, above + at,
                        grad_hidden + at, width, top);
    });
  }

  void mask_inputs() {
    const std::int64_t features = input_width_ - 1;
    const Real *raw_hidden = data<Real>(hidden_), *grad_input = data<Real>(grad_input_);
    Real *grad_hidden = data<Real>(grad_hidden_), *grad_features = data<Real>(gradients_["grad_features"]);
    Real* grad_energy = data<Real>(gradients_["grad_energy"]);
    at::parallel_for(0, hidden_.size(0) * flows_, grain(width_), [&](std::int64_t begin, std::int64_t end) {
      mask_row(raw_hidden + begin * width_, grad_hidden + begin * width_, (end - begin) * width_);
    });
    for (std::int64_t f = 0; f < flows_; ++f) {
      std::copy_n(grad_input + f * input_width_, features, grad_features + f * features);
      grad_energy[f] = grad_input[f * input_width_ + features];
    }
    mask_row(data<Real>(features_), grad_features, flows_ * features);
    mask_row(data<Real>(energy_), grad_energy, flows_);
  }

  const Setting setting_;
  const bool round_;
  const std::int64_t flows_, width_, input_width_;
  at::Tensor features_, energy_, hidden_;  // as given
  NamedTensors forward_results_, gradients_;
  at::Tensor guarded_input_, guarded_hidden_, hidden_operand_;  // [flows, features + 1], [layers, flows, hidden] twice
  at::Tensor next_hidden_, guard_hits_;
  std::vector<Layer> layers_;
  at::Tensor grad_output_, grad_next_hidden_, grad_hidden_, grad_input_, grad_above_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuCarrier<double>>(inputs, setting);
  return std::make_unique<CpuCarrier<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::energy_carrier

// energy_flow.energy_carrier, optimized on the CPU: all flows at once, three matrix products and one pointwise pass a
// layer, in buffers made by the constructor.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "src/common/cpu_clones.h"
#include "kernels/energy_flow/energy_carrier/math.h"
#include "src/energy_flow/energy_carrier/shape.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

using energy_flow::energy_carrier::CarrierShape;
using energy_flow::energy_carrier::layer_name;
namespace ops = energy_flow::energy_carrier;

// One row of sums holds four blocks of `hidden` channels, [hidden candidate | reset | update | input candidate]: the
// hidden products fill blocks 0-2, the input products blocks 1-3, so that reset and update are summed by the product.
constexpr std::int64_t kBlocks = 4;

// The bf16 roundings are loops of their own: a switch inside the arithmetic would keep it from being vectorised.
template <class Real>
TWINBENCH_CPU_CLONES void round_row(Real* __restrict row, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) row[j] = kernels::round_to_bf16(row[j]);
}

// Returns how many values were NaN.
template <class Real>
TWINBENCH_CPU_CLONES std::int32_t guard_row(const Real* __restrict raw, Real* __restrict guarded,
                                            Real* __restrict operand, std::int64_t width, bool round) {
  std::int32_t hits = 0;
  for (std::int64_t j = 0; j < width; ++j) {
    hits += raw[j] != raw[j] ? 1 : 0;
    guarded[j] = kernels::guard(raw[j], Real(ops::kGuardLimit));
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
    const Real value =
        ops::gru_channel(sums[width + j] + bias[j], sums[2 * width + j] + bias[width + j],
                         sums[3 * width + j] + bias[2 * width + j], sums[j] + bias[3 * width + j], hidden[j])
            .next;
    next[j] = kernels::guard(value, Real(ops::kGuardLimit));
    operand[j] = value;
  }
}

// As gate_row, but leaves [hidden candidate sum | reset | update | candidate] in the row for the backward pass.
template <class Real>
TWINBENCH_CPU_CLONES void gate_row_kept(Real* __restrict candidate_hidden, Real* __restrict reset,
                                        Real* __restrict update, Real* __restrict candidate,
                                        const Real* __restrict bias, const Real* __restrict hidden,
                                        Real* __restrict operand, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) {
    const Real from_hidden = candidate_hidden[j] + bias[3 * width + j];
    const auto channel = ops::gru_channel(reset[j] + bias[j], update[j] + bias[width + j],
                                          candidate[j] + bias[2 * width + j], from_hidden, hidden[j]);
    candidate_hidden[j] = from_hidden;
    reset[j] = channel.reset;
    update[j] = channel.update;
    candidate[j] = channel.candidate;
    operand[j] = channel.next;
  }
}

// Replaces the four blocks of a kept row by the gradients of their sums; grad_hidden gets the direct path only.
// What comes from above passes the output guard in the top layer (guard_above 1), and no guard between layers (0).
template <class Real>
TWINBENCH_CPU_CLONES void gate_row_backward(Real* __restrict candidate_hidden, Real* __restrict reset,
                                            Real* __restrict update, Real* __restrict candidate,
                                            const Real* __restrict hidden, const Real* __restrict grad_stored,
                                            const Real* __restrict grad_above, Real* __restrict grad_hidden,
                                            std::int64_t width, Real guard_above) {
  for (std::int64_t j = 0; j < width; ++j) {
    const Real next = candidate[j] + update[j] * (hidden[j] - candidate[j]);
    const Real pass = kernels::guard_derivative(next, Real(ops::kGuardLimit));
    const Real above = grad_above[j] * (Real(1) - guard_above * (Real(1) - pass));
    const auto grad = ops::gru_channel_gradient(reset[j], update[j], candidate[j], candidate_hidden[j], hidden[j],
                                                grad_stored[j] * pass + above);
    candidate_hidden[j] = grad.candidate_hidden;
    reset[j] = grad.reset_sum;
    update[j] = grad.update_sum;
    candidate[j] = grad.candidate_input;
    grad_hidden[j] = grad.hidden;
  }
}

// The guard's backward pass: no gradient where it acted.
template <class Real>
TWINBENCH_CPU_CLONES void mask_row(const Real* __restrict raw, Real* __restrict gradient, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j)
    gradient[j] = kernels::guard_derivative(raw[j], Real(ops::kGuardLimit)) != Real(0) ? gradient[j] : Real(0);
}

template <class Real>
TWINBENCH_CPU_CLONES void add_row(const Real* __restrict row, Real* __restrict sum, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) sum[j] += row[j];
}

// Rows that make a task worth a thread's wake-up.
std::int64_t grain(std::int64_t width) { return std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(width, 1)); }

template <class Real>
Real* data(const at::Tensor& tensor) {
  return static_cast<Real*>(tensor.mutable_data_ptr());
}

// Weights packed for the products, biases summed, and every view a product needs, for one layer.
struct Layer {
  at::Tensor input_reset_update_t, input_candidate_t, hidden_t;  // transposed views: [in, 2*hidden], [in, hidden], [hidden, 3*hidden]
  at::Tensor weight_input, weight_hidden;                        // [3*hidden, in]; [3*hidden, hidden] in block order 0-2
  at::Tensor biases;                                             // [4, hidden]
  at::Tensor sums;                                               // [flows, 4*hidden]
  at::Tensor hidden_sums, gate_sums, candidate_sums;             // blocks 0-2, 1-2, 3 of sums
  at::Tensor input_operand, hidden_operand;                      // [flows, in], [flows, hidden]
};

class CarrierForward : public Runnable {
 public:
  // With `keep`, every layer has sums of its own and leaves its gates there.
  CarrierForward(const NamedTensors& inputs, const Setting& setting, bool keep)
      : shape_(energy_flow::energy_carrier::checked_carrier_shape(inputs, setting)),
        wide_(setting.dtype == Dtype::kFp64),
        round_(setting.dtype == Dtype::kBf16),
        keep_(keep),
        features_(inputs["features"].contiguous()),
        energy_(inputs["energy"].contiguous()),
        hidden_(inputs["hidden"].contiguous()) {
    const auto options = features_.options();
    const std::int64_t flows = shape_.flows, width = shape_.hidden;
    guarded_input_ = at::empty({flows, shape_.features + 1}, options);
    guarded_hidden_ = at::empty_like(hidden_);
    hidden_operand_ = round_ ? at::empty_like(hidden_) : guarded_hidden_;
    next_hidden_ = at::empty_like(hidden_);
    guard_hits_ = at::empty({flows}, options.dtype(at::kInt));
    at::Tensor operand = round_ ? at::empty_like(guarded_input_) : guarded_input_;
    at::Tensor sums = at::empty({flows, kBlocks * width}, options);
    for (std::int64_t l = 0; l < shape_.layers; ++l) {
      layers_.push_back(pack(inputs, l, keep && l > 0 ? at::empty_like(sums) : sums));
      layers_.back().input_operand = operand;
      layers_.back().hidden_operand = hidden_operand_.select(0, l);
      operand = at::empty({flows, width}, options);
    }
    last_operand_ = operand;
  }

  void run() override {
    if (shape_.flows == 0) return;
    wide_ ? run_forward<double>() : run_forward<float>();
  }

  NamedTensors outputs() override {
    return {{"output", next_hidden_.select(0, shape_.layers - 1)},
            {"next_hidden", next_hidden_},
            {"guard_hits", guard_hits_}};
  }

 protected:
  CarrierShape shape_;
  bool wide_, round_, keep_;
  at::Tensor features_, energy_, hidden_;  // as given
  at::Tensor guarded_input_;               // [flows, features + 1]
  at::Tensor guarded_hidden_;              // [layers, flows, hidden]
  std::vector<Layer> layers_;

 private:
  template <class Real>
  void run_forward() {
    guard_inputs<Real>();
    for (std::int64_t l = 0; l < shape_.layers; ++l) {
      Layer& layer = layers_[l];
      at::mm_out(layer.hidden_sums, layer.hidden_operand, layer.hidden_t);
      layer.gate_sums.addmm_(layer.input_operand, layer.input_reset_update_t);
      at::mm_out(layer.candidate_sums, layer.input_operand, layer.input_candidate_t);
      apply_gates<Real>(l);
    }
  }

  Layer pack(const NamedTensors& inputs, std::int64_t l, const at::Tensor& sums) const {
    const std::int64_t width = shape_.hidden;
    const auto rounded = [this](const at::Tensor& t) {
      return (round_ ? t.to(at::kBFloat16).to(at::kFloat) : t).contiguous();
    };
    const auto block = [width](const at::Tensor& t, std::int64_t first, std::int64_t count) {
      return t.narrow(0, first * width, count * width);
    };
    const at::Tensor bias_input = inputs[layer_name("bias_input", l)];
    const at::Tensor bias_hidden = inputs[layer_name("bias_hidden", l)];
    const at::Tensor weight_hidden = rounded(inputs[layer_name("weight_hidden", l)]);
    Layer layer;
    layer.weight_input = rounded(inputs[layer_name("weight_input", l)]);
    layer.weight_hidden = at::cat({block(weight_hidden, 2, 1), block(weight_hidden, 0, 2)}, 0);
    layer.hidden_t = layer.weight_hidden.t();
    layer.input_reset_update_t = block(layer.weight_input, 0, 2).t();
    layer.input_candidate_t = block(layer.weight_input, 2, 1).t();
    layer.biases = at::cat({block(bias_input, 0, 2) + block(bias_hidden, 0, 2), block(bias_input, 2, 1),
                            block(bias_hidden, 2, 1)}).view({4, width});
    layer.sums = sums;
    layer.hidden_sums = sums.narrow(1, 0, 3 * width);
    layer.gate_sums = sums.narrow(1, width, 2 * width);
    layer.candidate_sums = sums.narrow(1, 3 * width, width);
    return layer;
  }

  template <class Real>
  void guard_inputs() {
    const std::int64_t width = shape_.hidden, features = shape_.features, flows = shape_.flows;
    const Real *o = data<Real>(features_), *e = data<Real>(energy_), *h = data<Real>(hidden_);
    Real *input = data<Real>(guarded_input_), *input_operand = data<Real>(layers_[0].input_operand);
    Real *hidden = data<Real>(guarded_hidden_), *hidden_operand = data<Real>(hidden_operand_);
    std::int32_t* hits = guard_hits_.mutable_data_ptr<std::int32_t>();
    at::parallel_for(0, flows, grain(width * shape_.layers), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t f = begin; f < end; ++f) {
        const std::int64_t row = f * (features + 1);
        std::int32_t count = guard_row(o + f * features, input + row, input_operand + row, features, round_);
        count += guard_row(e + f, input + row + features, input_operand + row + features, 1, round_);
        for (std::int64_t l = 0; l < shape_.layers; ++l) {
          const std::int64_t at = (l * flows + f) * width;
          count += guard_row(h + at, hidden + at, hidden_operand + at, width, round_);
        }
        hits[f] = count;
      }
    });
  }

  template <class Real>
  void apply_gates(std::int64_t l) {
    const std::int64_t width = shape_.hidden, flows = shape_.flows;
    const Real* bias = data<Real>(layers_[l].biases);
    Real* sums = data<Real>(layers_[l].sums);
    const Real* hidden = data<Real>(guarded_hidden_) + l * flows * width;
    Real* next = data<Real>(next_hidden_) + l * flows * width;
    Real* operand = data<Real>(l + 1 < shape_.layers ? layers_[l + 1].input_operand : last_operand_);
    at::parallel_for(0, flows, grain(width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t f = begin; f < end; ++f) {
        const std::int64_t at = f * width;
        Real* row = sums + kBlocks * at;
        if (keep_)
          gate_row_kept(row, row + width, row + 2 * width, row + 3 * width, bias, hidden + at, operand + at, width);
        else
          gate_row(row, bias, hidden + at, next + at, operand + at, width);
        if (round_) round_row(operand + at, width);
      }
    });
  }

  at::Tensor hidden_operand_, last_operand_, next_hidden_, guard_hits_;
};

// Forward with the gates kept, then back through the layers: five products and one pointwise pass each.
class CarrierBackward final : public CarrierForward {
 public:
  CarrierBackward(const NamedTensors& inputs, const Setting& setting)
      : CarrierForward(inputs, setting, true),
        grad_output_(inputs["grad_output"].contiguous()),
        grad_next_hidden_(inputs["grad_next_hidden"].contiguous()) {
    grad_hidden_ = at::zeros_like(hidden_);
    grad_features_ = at::zeros_like(features_);
    grad_energy_ = at::zeros_like(energy_);
    grad_input_ = at::empty_like(guarded_input_);
    grad_above_ = at::empty_like(grad_output_);
    for (std::int64_t l = 0; l < shape_.layers; ++l) gradients_.push_back(gradient_buffers(l));
  }

  void run() override {
    CarrierForward::run();
    if (shape_.flows == 0) return;
    wide_ ? run_backward<double>() : run_backward<float>();
  }

  NamedTensors outputs() override {
    NamedTensors values = {{"grad_features", grad_features_}, {"grad_energy", grad_energy_}, {"grad_hidden", grad_hidden_}};
    for (std::int64_t l = 0; l < shape_.layers; ++l) {
      values.set(layer_name("grad_weight_input", l), gradients_[l].weight_input);
      values.set(layer_name("grad_weight_hidden", l), gradients_[l].weight_hidden);
      values.set(layer_name("grad_bias_input", l), gradients_[l].bias_input);
      values.set(layer_name("grad_bias_hidden", l), gradients_[l].bias_hidden);
    }
    return values;
  }

 private:
  // Results of one layer, and the views of its sums (which hold gradients by then) that the products read or write.
  struct LayerGradient {
    at::Tensor weight_input, weight_hidden, bias_input, bias_hidden;
    at::Tensor weight_input_out, weight_hidden_gates, weight_hidden_candidate, hidden_out;
    at::Tensor input_sums, input_sums_t, gate_sums_t, candidate_sums_t, column_sums;
  };

  template <class Real>
  void run_backward() {
    for (std::int64_t l = shape_.layers - 1; l >= 0; --l) {
      LayerGradient& grad = gradients_[l];
      const Layer& layer = layers_[l];
      gates_backward<Real>(l);
      sum_biases<Real>(l);
      if (round_) round_sums<Real>(l);
      at::mm_out(grad.weight_input_out, grad.input_sums_t, layer.input_operand);
      at::mm_out(grad.weight_hidden_gates, grad.gate_sums_t, layer.hidden_operand);
      at::mm_out(grad.weight_hidden_candidate, grad.candidate_sums_t, layer.hidden_operand);
      grad.hidden_out.addmm_(layer.hidden_sums, layer.weight_hidden);
      at::mm_out(l > 0 ? grad_above_ : grad_input_, grad.input_sums, layer.weight_input);
    }
    mask_inputs<Real>();
  }

  LayerGradient gradient_buffers(std::int64_t l) const {
    const std::int64_t width = shape_.hidden;
    const auto options = features_.options();
    const Layer& layer = layers_[l];
    LayerGradient grad;
    grad.weight_input = at::zeros_like(layer.weight_input);
    grad.weight_hidden = at::zeros_like(layer.weight_hidden);
    grad.bias_input = at::zeros({3 * width}, options);
    grad.bias_hidden = at::zeros({3 * width}, options);
    grad.column_sums = at::zeros({kBlocks * width}, options);
    grad.weight_input_out = grad.weight_input;
    grad.weight_hidden_gates = grad.weight_hidden.narrow(0, 0, 2 * width);
    grad.weight_hidden_candidate = grad.weight_hidden.narrow(0, 2 * width, width);
    grad.hidden_out = grad_hidden_.select(0, l);
    grad.input_sums = layer.sums.narrow(1, width, 3 * width);
    grad.input_sums_t = grad.input_sums.t();
    grad.gate_sums_t = layer.gate_sums.t();
    grad.candidate_sums_t = layer.sums.narrow(1, 0, width).t();
    return grad;
  }

  template <class Real>
  void gates_backward(std::int64_t l) {
    const std::int64_t width = shape_.hidden, flows = shape_.flows;
    const bool top = l + 1 == shape_.layers;
    Real* sums = data<Real>(layers_[l].sums);
    const Real* hidden = data<Real>(guarded_hidden_) + l * flows * width;
    const Real* stored = data<Real>(grad_next_hidden_) + l * flows * width;
    const Real* above = data<Real>(top ? grad_output_ : grad_above_);
    Real* grad_hidden = data<Real>(grad_hidden_) + l * flows * width;
    at::parallel_for(0, flows, grain(width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t f = begin; f < end; ++f) {
        const std::int64_t at = f * width;
        Real* row = sums + kBlocks * at;
        gate_row_backward(row, row + width, row + 2 * width, row + 3 * width, hidden + at, stored + at, above + at,
                          grad_hidden + at, width, top ? Real(1) : Real(0));
      }
    });
  }

  // The sums' gradients as the products take them; the biases' have been taken from the exact ones.
  template <class Real>
  void round_sums(std::int64_t l) {
    const std::int64_t columns = kBlocks * shape_.hidden;
    Real* rows = data<Real>(layers_[l].sums);
    at::parallel_for(0, shape_.flows, grain(columns), [&](std::int64_t begin, std::int64_t end) {
      round_row(rows + begin * columns, (end - begin) * columns);
    });
  }

  // Column sums in flow order, columns shared among the threads: the same bits for any number of threads.
  template <class Real>
  void sum_biases(std::int64_t l) {
    const std::int64_t width = shape_.hidden, flows = shape_.flows, columns = kBlocks * width;
    const Real* rows = data<Real>(layers_[l].sums);
    Real* sums = data<Real>(gradients_[l].column_sums);
    at::parallel_for(0, columns, 512, [&](std::int64_t begin, std::int64_t end) {
      std::fill(sums + begin, sums + end, 0.0f);
      for (std::int64_t f = 0; f < flows; ++f) add_row(rows + f * columns + begin, sums + begin, end - begin);
    });
    Real *input = data<Real>(gradients_[l].bias_input), *hidden = data<Real>(gradients_[l].bias_hidden);
    std::copy_n(sums + width, 3 * width, input);
    std::copy_n(sums + width, 2 * width, hidden);
    std::copy_n(sums, width, hidden + 2 * width);
  }

  template <class Real>
  void mask_inputs() {
    const std::int64_t width = shape_.hidden, features = shape_.features, rows = shape_.layers * shape_.flows;
    const Real *raw_hidden = data<Real>(hidden_), *raw_features = data<Real>(features_), *grad_input = data<Real>(grad_input_);
    Real *grad_hidden = data<Real>(grad_hidden_), *grad_features = data<Real>(grad_features_), *grad_energy = data<Real>(grad_energy_);
    at::parallel_for(0, rows, grain(width), [&](std::int64_t begin, std::int64_t end) {
      mask_row(raw_hidden + begin * width, grad_hidden + begin * width, (end - begin) * width);
    });
    for (std::int64_t f = 0; f < shape_.flows; ++f) {
      const Real* row = grad_input + f * (features + 1);
      std::copy_n(row, features, grad_features + f * features);
      grad_energy[f] = row[features];
    }
    mask_row(raw_features, grad_features, shape_.flows * features);
    mask_row(data<Real>(energy_), grad_energy, shape_.flows);
  }

  at::Tensor grad_output_, grad_next_hidden_;  // given
  at::Tensor grad_hidden_, grad_features_, grad_energy_, grad_input_, grad_above_;
  std::vector<LayerGradient> gradients_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.input_case.pass == Pass::kBackward) return std::make_unique<CarrierBackward>(inputs, setting);
  return std::make_unique<CarrierForward>(inputs, setting, false);
}

}  // namespace twinbench::energy_flow::energy_carrier

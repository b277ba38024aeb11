// energy_flow.energy_carrier, optimized on CUDA: products by cuBLAS on the current stream, the rest in fused kernels.
// Forward: a guard kernel, the hidden products of all layers in one batch, then one product and one kernel a layer.
// Backward: a kernel and two products a layer, and the products of all layers' hidden sums last.
#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "kernels/energy_flow/energy_carrier/arguments.h"
#include "optimized/common/cuda.h"
#include "optimized/common/packing.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

class CudaCarrier final : public Runnable {
 public:
  CudaCarrier(const NamedTensors& inputs, const Setting& setting)
      : backward_(setting.backward()),
        shape_{.flows = setting.size("flows"),
               .features = static_cast<std::int32_t>(setting.size("features")),
               .width = static_cast<std::int32_t>(setting.size("hidden")),
               .layers = static_cast<std::int32_t>(setting.size("layers"))},
        features_(inputs["features"].contiguous()),
        energy_(inputs["energy"].contiguous()),
        hidden_(inputs["hidden"].contiguous()),
        results_(zero_results(forward_of(setting))) {
    const bool bf16 = rounds_operands(setting);
    const std::int64_t flows = shape_.flows, width = shape_.width;
    input_ = Operand::like(make({flows, shape_.features + 1}), bf16);
    guarded_hidden_ = Operand::like(hidden_, bf16);
    hidden_sums_ = make({shape_.layers, flows, 3 * width});
    input_sums_ = make({flows, 3 * width});
    next_hidden_ = results_["next_hidden"];
    guard_hits_ = results_["guard_hits"];
    results_.set("output", next_hidden_.select(0, shape_.layers - 1));
    std::vector<at::Tensor> weight_hidden;
    for (std::int64_t l = 0; l < shape_.layers; ++l) {
      const std::string number = std::to_string(l);
      layers_.push_back({.weight_input = operand_of(inputs["weight_input_" + number], setting, at::kBFloat16),
                         .bias_input = inputs["bias_input_" + number].contiguous(),
                         .bias_hidden = inputs["bias_hidden_" + number].contiguous(),
                         .state = Operand::like(hidden_.select(0, l), bf16)});
      weight_hidden.push_back(operand_of(inputs["weight_hidden_" + number], setting, at::kBFloat16));
    }
    weight_hidden_ = at::stack(weight_hidden);
    weight_hidden_t_ = weight_hidden_.transpose(1, 2);
    if (backward_) prepare_backward(inputs, setting);
  }

  void run() override {
    if (shape_.flows == 0) return;
    launch_guard({.shape = shape_,
                  .features = data<float>(features_),
                  .energy = data<float>(energy_),
                  .hidden = data<float>(hidden_),
                  .input = input_.both(),
                  .guarded_hidden = guarded_hidden_.both(),
                  .guard_hits = data<std::int32_t>(guard_hits_)},
                 stream());
    multiply(hidden_sums_, guarded_hidden_.factor(), weight_hidden_t_);
    for (std::int64_t l = 0; l < shape_.layers; ++l) {
      multiply(input_sums_, input_of(l).factor(), layers_[l].weight_input_t);
      launch_gates({.shape = shape_,
                    .input_sums = data<float>(input_sums_),
                    .hidden_sums = of_layer(hidden_sums_, l),
                    .bias_input = data<float>(layers_[l].bias_input),
                    .bias_hidden = data<float>(layers_[l].bias_hidden),
                    .hidden = of_layer(guarded_hidden_.exact, l),
                    .next = of_layer(next_hidden_, l),
                    .operand = layers_[l].state.only_factor(),
                    .kept = backward_ ? of_layer(kept_, l) : nullptr},
                   stream());
    }
    if (backward_) run_backward();
  }

  NamedTensors outputs() override { return results_; }

 private:
  struct Layer {
    at::Tensor weight_input, bias_input, bias_hidden;  // the weight as the products take it
    Operand state;                                     // [flows, hidden], unguarded: the input of the layer above
    at::Tensor weight_input_t = weight_input.t();
    at::Tensor grad_weight_input = {}, grad_bias_input = {}, grad_bias_hidden = {};  // backward only
  };

  at::Tensor make(at::IntArrayRef shape) const { return at::empty(shape, features_.options()); }
  // A layer's first element in a tensor whose first axis are the layers.
  static float* of_layer(const at::Tensor& states, std::int64_t l) {
    return data<float>(states) + l * states.stride(0);
  }
  const Operand& input_of(std::int64_t l) const { return l == 0 ? input_ : layers_[l - 1].state; }

  void prepare_backward(const NamedTensors& inputs, const Setting& setting) {
    const bool bf16 = rounds_operands(setting);
    results_ = zero_results(setting);
    kept_ = make({shape_.layers, shape_.flows, std::int64_t{4} * shape_.width});
    grad_output_ = inputs["grad_output"].contiguous();
    grad_next_hidden_ = inputs["grad_next_hidden"].contiguous();
    grad_input_sums_ = Operand::like(input_sums_, bf16);
    grad_hidden_sums_ = Operand::like(hidden_sums_, bf16);
    grad_input_sums_t_ = grad_input_sums_.factor().t();
    grad_hidden_sums_t_ = grad_hidden_sums_.factor().transpose(1, 2);
    grad_direct_ = at::empty_like(hidden_);
    grad_product_ = at::empty_like(hidden_);
    grad_input_ = at::empty_like(input_.exact);
    grad_above_ = at::empty_like(grad_output_);
    grad_weight_hidden_ = at::zeros(weight_hidden_.sizes(), features_.options());
    for (std::int64_t l = 0; l < shape_.layers; ++l) {
      const std::string number = std::to_string(l);
      layers_[l].grad_weight_input = results_["grad_weight_input_" + number];
      layers_[l].grad_bias_input = results_["grad_bias_input_" + number];
      layers_[l].grad_bias_hidden = results_["grad_bias_hidden_" + number];
      results_.set("grad_weight_hidden_" + number, grad_weight_hidden_.select(0, l));
    }
  }

  void run_backward() {
    for (std::int64_t l = shape_.layers - 1; l >= 0; --l) {
      const bool top = l + 1 == shape_.layers;
      kernels::Operands<float> hidden_sums = grad_hidden_sums_.both().from(l * grad_hidden_sums_.exact.stride(0));
      launch_gates_backward({.shape = shape_,
                             .kept = of_layer(kept_, l),
                             .hidden = of_layer(guarded_hidden_.exact, l),
                             .grad_stored = of_layer(grad_next_hidden_, l),
                             .grad_above = data<float>(top ? grad_output_ : grad_above_),
                             .grad_input_sums = grad_input_sums_.both(),
                             .grad_hidden_sums = hidden_sums,
                             .grad_direct = of_layer(grad_direct_, l),
                             .top = top},
                            stream());
      sum_columns(data<float>(grad_input_sums_.exact), layers_[l].grad_bias_input);
      sum_columns(hidden_sums.plain, layers_[l].grad_bias_hidden);
      multiply(layers_[l].grad_weight_input, grad_input_sums_t_, input_of(l).factor());
      multiply(l > 0 ? grad_above_ : grad_input_, grad_input_sums_.factor(), layers_[l].weight_input);
    }
    multiply(grad_weight_hidden_, grad_hidden_sums_t_, guarded_hidden_.factor());
    multiply(grad_product_, grad_hidden_sums_.factor(), weight_hidden_);
    launch_mask({.shape = shape_,
                 .features = data<float>(features_),
                 .energy = data<float>(energy_),
                 .hidden = data<float>(hidden_),
                 .grad_input = data<float>(grad_input_),
                 .grad_direct = data<float>(grad_direct_),
                 .grad_product = data<float>(grad_product_),
                 .grad_features = data<float>(results_["grad_features"]),
                 .grad_energy = data<float>(results_["grad_energy"]),
                 .grad_hidden = data<float>(results_["grad_hidden"])},
                stream());
  }

  void sum_columns(const float* rows, const at::Tensor& sums) const {
    const auto columns = static_cast<std::int32_t>(sums.numel());
    kernels::launch_column_sums(
        {.rows = rows, .sums = data<float>(sums), .count = shape_.flows, .columns = columns, .stride = columns},
        stream());
  }

  const bool backward_;
  const Shape shape_;
  at::Tensor features_, energy_, hidden_;  // as given
  NamedTensors results_;
  Operand input_, guarded_hidden_;  // [flows, features + 1], [layers, flows, hidden]
  std::vector<Layer> layers_;
  at::Tensor weight_hidden_, weight_hidden_t_;  // [layers, 3*hidden, hidden] and transposed
  at::Tensor hidden_sums_, input_sums_;         // [layers, flows, 3*hidden], [flows, 3*hidden]
  at::Tensor next_hidden_, guard_hits_, kept_;  // kept: [layers, flows, 4*hidden]
  at::Tensor grad_output_, grad_next_hidden_;   // given
  Operand grad_input_sums_, grad_hidden_sums_;
  at::Tensor grad_input_sums_t_, grad_hidden_sums_t_, grad_direct_, grad_product_, grad_input_, grad_above_;
  at::Tensor grad_weight_hidden_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaCarrier>(inputs, setting);
}

}  // namespace twinbench::energy_flow::energy_carrier

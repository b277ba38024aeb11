// energy_flow.energy_carrier, optimized on CUDA: products by cuBLAS on the current stream, the rest in fused kernels.
// Forward: a guard kernel; then either one kernel a layer, products and the guard of the layer above included, in one
// of its tiles (bf16 only), or the hidden products of all layers in one batch, and one product and one kernel a layer.
// Set-up picks the fastest.
// Backward: a kernel and two products a layer, and the products of all layers' hidden sums last.
#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <vector>

#include "kernels/energy_flow/energy_carrier/arguments.h"
#include "optimized/common/choose.h"
#include "optimized/common/cuda.h"
#include "optimized/common/packing.h"
#include "optimized/energy_flow/energy_carrier/expected_time.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

class CudaCarrier final : public Runnable {
 public:
  CudaCarrier(const NamedTensors& inputs, const Setting& setting)
      : backward_(setting.backward()),
        bf16_(rounds_operands(setting)),
        tf32_(setting.dtype == Dtype::kTf32),
        shape_{.flows = setting.size("flows"),
               .features = static_cast<std::int32_t>(setting.size("features")),
               .width = static_cast<std::int32_t>(setting.size("hidden")),
               .layers = static_cast<std::int32_t>(setting.size("layers"))},
        features_(inputs["features"].contiguous()),
        energy_(inputs["energy"].contiguous()),
        hidden_(inputs["hidden"].contiguous()),
        results_(zero_results(forward_of(setting))) {
    const std::int64_t flows = shape_.flows, width = shape_.width, inputs_padded = input_width(shape_);
    input_ = operand(make({flows, inputs_padded}));
    guarded_hidden_ = operand(hidden_);
    next_hidden_ = results_["next_hidden"];
    guard_hits_ = results_["guard_hits"];
    results_.set("output", next_hidden_.select(0, shape_.layers - 1));
    std::vector<at::Tensor> weight_hidden;
    for (std::int64_t l = 0; l < shape_.layers; ++l) {
      const std::string number = std::to_string(l);
      const at::Tensor weight = operand_of(inputs["weight_input_" + number], setting, at::kBFloat16);
      const std::int64_t padding = l == 0 ? inputs_padded - weight.size(1) : 0;
      layers_.push_back({.weight_input = at::constant_pad_nd(weight, {0, padding}),
                         .bias_input = inputs["bias_input_" + number].contiguous(),
                         .bias_hidden = inputs["bias_hidden_" + number].contiguous(),
                         .state = l + 1 < shape_.layers ? operand(hidden_.select(0, l)) : at::Tensor()});
      weight_hidden.push_back(operand_of(inputs["weight_hidden_" + number], setting, at::kBFloat16));
    }
    weight_hidden_ = at::stack(weight_hidden);
    weight_hidden_t_ = weight_hidden_.transpose(1, 2);
    if (backward_) prepare_backward(inputs, setting);
    hidden_sums_ = make({shape_.layers, flows, 3 * width});
    input_sums_ = make({flows, 3 * width});
    choose_form(setting.device);
    if (tile_) hidden_sums_ = input_sums_ = at::Tensor();
  }

  void run() override {
    if (shape_.flows == 0) return;
    run_forward(tile_);
    if (backward_) run_backward();
  }

  NamedTensors outputs() override { return results_; }

 private:
  struct Layer {
    at::Tensor weight_input, bias_input, bias_hidden;  // the weight as the products take it
    at::Tensor state;  // [flows, hidden], unguarded, as the products take it: the input of the layer above, if any
    at::Tensor weight_input_t = weight_input.t();
    // Backward only; `trained` is the input without padding.
    at::Tensor trained = {}, grad_weight_input = {}, grad_bias_input = {}, grad_bias_hidden = {};
  };

  // What the products take, of that shape.
  at::Tensor operand(const at::Tensor& shape) const {
    return at::empty_like(shape, bf16_ ? shape.options().dtype(at::kBFloat16) : shape.options());
  }

  void choose_form(c10::Device device) {
    if (shape_.flows == 0) return;
    const DeviceGuard on(device);
    std::vector<std::optional<FusedTile>> forms = {std::nullopt};
    if (bf16_ && shape_.width % 8 == 0)
      forms.insert(forms.end(), {FusedTile::kSmall, FusedTile::kLarge, FusedTile::kTall});
    std::vector<Way> ways;
    for (const auto& form : forms)
      ways.push_back({form_name(form), expected_seconds(shape_, form), [this, form] { run_forward(form); }});
    const std::string of = c10::str(shape_.layers, " forward layers of ", shape_.flows, " flows, features ",
                                    shape_.features, ", width ", shape_.width, bf16_ ? " bf16" : "");
    tile_ = forms[choose(of, ways)];
  }

  // Fused layers guard the state of the layer above on their way.
  void run_forward(std::optional<FusedTile> tile) {
    launch_guard({.shape = shape_,
                  .guarded_layers = tile ? 1 : shape_.layers,
                  .features = data<float>(features_),
                  .energy = data<float>(energy_),
                  .hidden = data<float>(hidden_),
                  .input = operands<float>(input_),
                  .guarded_hidden = operands<float>(guarded_hidden_),
                  .guard_hits = data<std::int32_t>(guard_hits_)},
                 stream());
    if (!tile) return run_library_layers();
    for (std::int64_t l = 0; l < shape_.layers; ++l) run_fused_layer(*tile, l);
  }

  void run_fused_layer(FusedTile tile, std::int64_t l) {
    const at::Tensor& input = input_of(l);
    const bool top = l + 1 == shape_.layers;
    launch_fused_gates(
        tile,
        {.shape = shape_,
         .input_width = static_cast<std::int32_t>(input.size(1)),
         .input = data<std::uint16_t>(input),
         .hidden_operand = data<std::uint16_t>(guarded_hidden_) + l * hidden_.stride(0),
         .weight_input = data<std::uint16_t>(layers_[l].weight_input),
         .weight_hidden = data<std::uint16_t>(weight_hidden_) + l * weight_hidden_.stride(0),
         .bias_input = data<float>(layers_[l].bias_input),
         .bias_hidden = data<float>(layers_[l].bias_hidden),
         .hidden = of_layer(hidden_, l),
         .next = of_layer(next_hidden_, l),
         .operand = layers_[l].state.defined() ? data<std::uint16_t>(layers_[l].state) : nullptr,
         .kept = backward_ ? of_layer(kept_, l) : nullptr,
         .hidden_above = top ? nullptr : of_layer(hidden_, l + 1),
         .operand_above = top ? nullptr : data<std::uint16_t>(guarded_hidden_) + (l + 1) * hidden_.stride(0),
         .guard_hits = data<std::int32_t>(guard_hits_)},
        stream());
  }

  void run_library_layers() {
    multiply(hidden_sums_, guarded_hidden_, weight_hidden_t_, tf32_);
    for (std::int64_t l = 0; l < shape_.layers; ++l) {
      multiply(input_sums_, input_of(l), layers_[l].weight_input_t, tf32_);
      launch_gates(
          {.shape = shape_,
           .input_sums = data<float>(input_sums_),
           .hidden_sums = of_layer(hidden_sums_, l),
           .bias_input = data<float>(layers_[l].bias_input),
           .bias_hidden = data<float>(layers_[l].bias_hidden),
           .hidden = of_layer(hidden_, l),
           .next = of_layer(next_hidden_, l),
           .operand = layers_[l].state.defined() ? operands<float>(layers_[l].state) : kernels::Operands<float>{},
           .kept = backward_ ? of_layer(kept_, l) : nullptr},
          stream());
    }
  }

  at::Tensor make(at::IntArrayRef shape) const { return at::empty(shape, features_.options()); }
  // A layer's first element in a tensor whose first axis are the layers.
  static float* of_layer(const at::Tensor& states, std::int64_t l) {
    return data<float>(states) + l * states.stride(0);
  }
  const at::Tensor& input_of(std::int64_t l) const { return l == 0 ? input_ : layers_[l - 1].state; }

  void prepare_backward(const NamedTensors& inputs, const Setting& setting) {
    results_ = zero_results(setting);
    const std::int64_t gates = std::int64_t{3} * shape_.width;
    kept_ = make({shape_.layers, shape_.flows, std::int64_t{4} * shape_.width});
    grad_output_ = inputs["grad_output"].contiguous();
    grad_next_hidden_ = inputs["grad_next_hidden"].contiguous();
    grad_input_sums_ = Operand::like(make({shape_.flows, gates}), bf16_);
    grad_hidden_sums_ = Operand::like(make({shape_.layers, shape_.flows, gates}), bf16_);
    grad_input_sums_t_ = grad_input_sums_.factor().t();
    grad_hidden_sums_t_ = grad_hidden_sums_.factor().transpose(1, 2);
    grad_direct_ = at::empty_like(hidden_);
    grad_product_ = at::empty_like(hidden_);
    grad_input_ = make(input_.sizes());
    grad_above_ = at::empty_like(grad_output_);
    grad_weight_hidden_ = at::zeros(weight_hidden_.sizes(), features_.options());
    for (std::int64_t l = 0; l < shape_.layers; ++l) {
      const std::string number = std::to_string(l);
      layers_[l].grad_weight_input = results_["grad_weight_input_" + number];
      layers_[l].trained = input_of(l).narrow(1, 0, layers_[l].grad_weight_input.size(1));
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
                             .hidden = of_layer(hidden_, l),
                             .grad_stored = of_layer(grad_next_hidden_, l),
                             .grad_above = data<float>(top ? grad_output_ : grad_above_),
                             .grad_input_sums = grad_input_sums_.both(),
                             .grad_hidden_sums = hidden_sums,
                             .grad_direct = of_layer(grad_direct_, l),
                             .top = top},
                            stream());
      sum_columns(data<float>(grad_input_sums_.exact), layers_[l].grad_bias_input);
      sum_columns(hidden_sums.plain, layers_[l].grad_bias_hidden);
      multiply(layers_[l].grad_weight_input, grad_input_sums_t_, layers_[l].trained, tf32_);
      multiply(l > 0 ? grad_above_ : grad_input_, grad_input_sums_.factor(), layers_[l].weight_input, tf32_);
    }
    multiply(grad_weight_hidden_, grad_hidden_sums_t_, guarded_hidden_, tf32_);
    multiply(grad_product_, grad_hidden_sums_.factor(), weight_hidden_, tf32_);
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

  const bool backward_, bf16_, tf32_;
  const Shape shape_;
  at::Tensor features_, energy_, hidden_;  // as given
  NamedTensors results_;
  at::Tensor input_, guarded_hidden_;  // [flows, input_width], [layers, flows, hidden], as the products take them
  std::optional<FusedTile> tile_;      // of the fused layers; none: products of the library
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

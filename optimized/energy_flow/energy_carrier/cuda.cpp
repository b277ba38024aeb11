// energy_flow.energy_carrier, optimized on CUDA: products by cuBLAS on the current stream, the rest in fused kernels.
// Forward: a guard kernel, the hidden products of all layers in one batch, then one product and one kernel a layer.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include "kernels/energy_flow/energy_carrier/arguments.h"
#include "src/common/error.h"
#include "src/energy_flow/energy_carrier/shape.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

using energy_flow::energy_carrier::CarrierShape;
using energy_flow::energy_carrier::layer_name;

float* data(const at::Tensor& tensor) { return static_cast<float*>(tensor.mutable_data_ptr()); }
std::uint16_t* bf16_data(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<std::uint16_t*>(tensor.mutable_data_ptr()) : nullptr;
}

// A matrix in fp32, and in bf16 mode also as the products take it.
struct Operand {
  at::Tensor exact, rounded;  // rounded: undefined in fp32 mode

  static Operand like(const at::Tensor& shape, bool bf16) {
    return {at::empty_like(shape), bf16 ? at::empty_like(shape, shape.options().dtype(at::kBFloat16)) : at::Tensor()};
  }
  const at::Tensor& factor() const { return rounded.defined() ? rounded : exact; }
};

// out = a b, accumulated and returned in fp32 whatever the operands are.
void multiply(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  const bool batched = a.dim() == 3;
  if (a.scalar_type() == at::kFloat)
    batched ? at::bmm_out(out, a, b) : at::mm_out(out, a, b);
  else
    batched ? at::bmm_out(out, a, b, at::kFloat) : at::mm_out(out, a, b, at::kFloat);
}

class CudaCarrier : public Runnable {
 public:
  CudaCarrier(const NamedTensors& inputs, const Setting& setting, bool keep)
      : shape_(energy_flow::energy_carrier::checked_carrier_shape(inputs, setting)),
        bf16_(setting.dtype == Dtype::kBf16),
        device_(setting.device),
        features_(inputs["features"].contiguous()),
        energy_(inputs["energy"].contiguous()),
        hidden_(inputs["hidden"].contiguous()) {
    if (!features_.is_cuda())
      throw Error(ErrorKind::kMissingDevice, "features", features_.device().str(), "give the inputs on a CUDA device");
    const c10::cuda::CUDAGuard guard(device_);
    const auto options = features_.options();
    const std::int64_t flows = shape_.flows, width = shape_.hidden, layers = shape_.layers;
    input_ = Operand::like(at::empty({flows, shape_.features + 1}, options), bf16_);
    guarded_hidden_ = Operand::like(hidden_, bf16_);
    next_hidden_ = at::empty_like(hidden_);
    hidden_sums_ = at::empty({layers, flows, 3 * width}, options);
    input_sums_ = at::empty({flows, 3 * width}, options);
    guard_hits_ = at::empty({flows}, options.dtype(at::kInt));
    if (keep) kept_ = at::empty({layers, flows, 4 * width}, options);
    std::vector<at::Tensor> weight_hidden;
    for (std::int64_t l = 0; l < layers; ++l) {
      weight_input_.push_back(factor(inputs[layer_name("weight_input", l)]));
      weight_hidden.push_back(factor(inputs[layer_name("weight_hidden", l)]));
      bias_input_.push_back(inputs[layer_name("bias_input", l)].contiguous());
      bias_hidden_.push_back(inputs[layer_name("bias_hidden", l)].contiguous());
      states_.push_back(Operand::like(hidden_.select(0, l), bf16_));  // unguarded: the input of the layer above
    }
    weight_hidden_ = at::stack(weight_hidden);
    weight_hidden_t_ = weight_hidden_.transpose(1, 2);
    for (const auto& weight : weight_input_) weight_input_t_.push_back(weight.t());
  }

  void run() override {
    if (shape_.flows == 0) return;
    const c10::cuda::CUDAGuard guard(device_);
    guard_inputs();
    multiply(hidden_sums_, guarded_hidden_.factor(), weight_hidden_t_);
    for (std::int64_t l = 0; l < shape_.layers; ++l) {
      multiply(input_sums_, layer_input(l).factor(), weight_input_t_[l]);
      apply_gates(l);
    }
  }

  NamedTensors outputs() override {
    return {{"output", next_hidden_.select(0, shape_.layers - 1)},
            {"next_hidden", next_hidden_},
            {"guard_hits", guard_hits_}};
  }

 protected:
  // Offset of a layer's first element in a [layers, flows, per_flow] tensor.
  std::int64_t layer_offset(std::int64_t l, std::int64_t per_flow) const { return l * shape_.flows * per_flow; }
  const Operand& layer_input(std::int64_t l) const { return l == 0 ? input_ : states_[l - 1]; }
  static energy_flow::energy_carrier::Stream stream() { return at::cuda::getCurrentCUDAStream().stream(); }

  CarrierShape shape_;
  bool bf16_;
  c10::Device device_;
  at::Tensor features_, energy_, hidden_;                  // as given
  Operand input_, guarded_hidden_;                         // [flows, features + 1], [layers, flows, hidden]
  std::vector<Operand> states_;                            // per layer [flows, hidden]
  std::vector<at::Tensor> weight_input_, weight_input_t_;  // per layer, as the products take them
  at::Tensor weight_hidden_, weight_hidden_t_;             // [layers, 3*hidden, hidden] and transposed
  at::Tensor hidden_sums_, input_sums_;                    // [layers, flows, 3*hidden], [flows, 3*hidden]
  at::Tensor kept_;                                        // [layers, flows, 4*hidden], for the backward pass only

 private:
  at::Tensor factor(const at::Tensor& weight) const {
    return bf16_ ? weight.contiguous().to(at::kBFloat16) : weight.contiguous();
  }

  void guard_inputs() {
    energy_flow::energy_carrier::launch_carrier_guard({data(features_), data(energy_), data(hidden_), data(input_.exact), data(guarded_hidden_.exact),
                          bf16_data(input_.rounded), bf16_data(guarded_hidden_.rounded),
                          static_cast<std::int32_t*>(guard_hits_.mutable_data_ptr()), shape_.flows,
                          static_cast<std::int32_t>(shape_.features), static_cast<std::int32_t>(shape_.hidden),
                          static_cast<std::int32_t>(shape_.layers)},
                         stream());
  }

  void apply_gates(std::int64_t l) {
    const std::int64_t width = shape_.hidden;
    energy_flow::energy_carrier::launch_carrier_gates({data(input_sums_), data(hidden_sums_) + layer_offset(l, 3 * width), data(bias_input_[l]),
                          data(bias_hidden_[l]), data(guarded_hidden_.exact) + layer_offset(l, width),
                          data(next_hidden_) + layer_offset(l, width), data(states_[l].exact),
                          bf16_data(states_[l].rounded),
                          kept_.defined() ? data(kept_) + layer_offset(l, 4 * width) : nullptr, shape_.flows,
                          static_cast<std::int32_t>(width)},
                         stream());
  }

  std::vector<at::Tensor> bias_input_, bias_hidden_;
  at::Tensor next_hidden_, guard_hits_;
};

// Forward with the gates kept; then a kernel and two products a layer, and the products of all layers' hidden sums last.
class CudaCarrierBackward final : public CudaCarrier {
 public:
  CudaCarrierBackward(const NamedTensors& inputs, const Setting& setting)
      : CudaCarrier(inputs, setting, true),
        grad_output_(inputs["grad_output"].contiguous()),
        grad_next_hidden_(inputs["grad_next_hidden"].contiguous()) {
    const c10::cuda::CUDAGuard guard(device_);
    const std::int64_t width = shape_.hidden;
    const auto options = features_.options();
    grad_input_sums_ = Operand::like(input_sums_, bf16_);
    grad_hidden_sums_ = Operand::like(hidden_sums_, bf16_);
    grad_input_sums_t_ = grad_input_sums_.factor().t();
    grad_hidden_sums_t_ = grad_hidden_sums_.factor().transpose(1, 2);
    grad_direct_ = at::empty_like(hidden_);
    grad_product_ = at::empty_like(hidden_);
    grad_input_ = at::empty_like(input_.exact);
    grad_above_ = at::empty_like(grad_output_);
    grad_features_ = at::zeros_like(features_);
    grad_energy_ = at::zeros_like(energy_);
    grad_hidden_ = at::zeros_like(hidden_);
    grad_weight_hidden_ = at::zeros(weight_hidden_.sizes(), options);
    for (std::int64_t l = 0; l < shape_.layers; ++l) {
      grad_weight_input_.push_back(at::zeros(weight_input_[l].sizes(), options));
      grad_bias_input_.push_back(at::zeros({3 * width}, options));
      grad_bias_hidden_.push_back(at::zeros({3 * width}, options));
    }
  }

  void run() override {
    CudaCarrier::run();
    if (shape_.flows == 0) return;
    const c10::cuda::CUDAGuard guard(device_);
    const std::int64_t width = shape_.hidden;
    for (std::int64_t l = shape_.layers - 1; l >= 0; --l) {
      gates_backward(l);
      sum_columns(data(grad_input_sums_.exact), grad_bias_input_[l]);
      sum_columns(data(grad_hidden_sums_.exact) + layer_offset(l, 3 * width), grad_bias_hidden_[l]);
      multiply(grad_weight_input_[l], grad_input_sums_t_, layer_input(l).factor());
      multiply(l > 0 ? grad_above_ : grad_input_, grad_input_sums_.factor(), weight_input_[l]);
    }
    multiply(grad_weight_hidden_, grad_hidden_sums_t_, guarded_hidden_.factor());
    multiply(grad_product_, grad_hidden_sums_.factor(), weight_hidden_);
    energy_flow::energy_carrier::launch_carrier_mask({data(features_), data(energy_), data(hidden_), data(grad_input_), data(grad_direct_),
                         data(grad_product_), data(grad_features_), data(grad_energy_), data(grad_hidden_),
                         shape_.flows, static_cast<std::int32_t>(shape_.features), static_cast<std::int32_t>(width),
                         static_cast<std::int32_t>(shape_.layers)},
                        stream());
  }

  NamedTensors outputs() override {
    NamedTensors values = {{"grad_features", grad_features_}, {"grad_energy", grad_energy_}, {"grad_hidden", grad_hidden_}};
    for (std::int64_t l = 0; l < shape_.layers; ++l) {
      values.set(layer_name("grad_weight_input", l), grad_weight_input_[l]);
      values.set(layer_name("grad_weight_hidden", l), grad_weight_hidden_.select(0, l));
      values.set(layer_name("grad_bias_input", l), grad_bias_input_[l]);
      values.set(layer_name("grad_bias_hidden", l), grad_bias_hidden_[l]);
    }
    return values;
  }

 private:
  void gates_backward(std::int64_t l) {
    const std::int64_t width = shape_.hidden;
    const bool top = l + 1 == shape_.layers;
    std::uint16_t* hidden_bf16 = bf16_data(grad_hidden_sums_.rounded);
    energy_flow::energy_carrier::launch_carrier_gates_backward(
        {data(kept_) + layer_offset(l, 4 * width), data(guarded_hidden_.exact) + layer_offset(l, width),
         data(grad_next_hidden_) + layer_offset(l, width), data(top ? grad_output_ : grad_above_),
         data(grad_input_sums_.exact), data(grad_hidden_sums_.exact) + layer_offset(l, 3 * width),
         data(grad_direct_) + layer_offset(l, width), bf16_data(grad_input_sums_.rounded),
         hidden_bf16 ? hidden_bf16 + layer_offset(l, 3 * width) : nullptr, shape_.flows,
         static_cast<std::int32_t>(width), top ? 1 : 0},
        stream());
  }

  void sum_columns(const float* rows, const at::Tensor& sums) {
    const auto columns = static_cast<std::int32_t>(sums.numel());
    energy_flow::energy_carrier::launch_column_sums({rows, data(sums), shape_.flows, columns, columns}, stream());
  }

  at::Tensor grad_output_, grad_next_hidden_;  // given
  Operand grad_input_sums_, grad_hidden_sums_;
  at::Tensor grad_input_sums_t_, grad_hidden_sums_t_, grad_direct_, grad_product_, grad_input_, grad_above_;
  at::Tensor grad_features_, grad_energy_, grad_hidden_, grad_weight_hidden_;
  std::vector<at::Tensor> grad_weight_input_, grad_bias_input_, grad_bias_hidden_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  if (setting.input_case.pass == Pass::kBackward) return std::make_unique<CudaCarrierBackward>(inputs, setting);
  return std::make_unique<CudaCarrier>(inputs, setting, false);
}

}  // namespace twinbench::energy_flow::energy_carrier

// energy_flow.carrier_heads, optimized on CUDA: one cuBLAS product for all first layers and one kernel that finishes
// every flow. In bf16 mode one kernel more rounds the state, which the carrier itself would write rounded.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <cmath>

#include "kernels/energy_flow/carrier_heads.h"
#include "kernels/energy_flow/energy_carrier.h"
#include "src/common/error.h"
#include "src/energy_flow/carrier_heads.h"

namespace twinbench {
namespace {

using energy_flow::HeadsOptions;
using energy_flow::HeadsShape;
namespace ops = energy_flow;

float* data(const at::Tensor& tensor) { return static_cast<float*>(tensor.mutable_data_ptr()); }
std::uint16_t* bf16_data(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<std::uint16_t*>(tensor.mutable_data_ptr()) : nullptr;
}
const std::int64_t* keys(const at::Tensor& tensor) { return static_cast<const std::int64_t*>(tensor.const_data_ptr()); }
ops::Stream stream() { return at::cuda::getCurrentCUDAStream().stream(); }

// out = a b, accumulated and returned in fp32 whatever the operands are.
void multiply(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() == at::kFloat)
    at::mm_out(out, a, b);
  else
    at::mm_out(out, a, b, at::kFloat);
}

ops::HeadsRule rule_of(const HeadsOptions& o) {
  double scale = o.scale;
  if (o.global_step >= ops::kWarmUp) {
    const double decays = std::floor(static_cast<double>(o.global_step - ops::kWarmUp) / ops::kInterval);
    scale = std::max(o.smallest_scale, o.scale * std::pow(ops::kDecay, decays));
  }
  return {static_cast<float>(scale), static_cast<float>(o.noise), o.noise_on_z ? 1.0f : 0.0f,
          static_cast<float>(o.gate ? o.gate_threshold : o.movement_threshold), o.most_spawned, o.gate ? 1 : 0,
          {o.seed, o.attempt, o.step}};
}

// Rows are padded to a multiple of eight columns: tensor cores need aligned rows.
ops::HeadColumns columns_of(const HeadsShape& shape, bool gate) {
  const std::int64_t used = shape.energy_width + shape.head_width + (gate ? 1 + shape.head_width : 0);
  return {static_cast<std::int32_t>(shape.energy_width), static_cast<std::int32_t>(shape.head_width),
          static_cast<std::int32_t>((used + 7) / 8 * 8)};
}

class CudaHeads : public Runnable {
 public:
  CudaHeads(const Values& inputs, const Setting& setting, bool keep)
      : shape_(energy_flow::checked_heads_shape(inputs, setting)),
        options_(energy_flow::checked_heads_options(setting)),
        rule_(rule_of(options_)),
        columns_(columns_of(shape_, options_.gate)),
        bf16_(setting.dtype == Dtype::kBf16),
        device_(setting.device),
        carried_(inputs["carried"].contiguous()) {
    if (!carried_.is_cuda())
      throw Error(ErrorKind::kMissingDevice, "carried", carried_.device().str(), "give the inputs on a CUDA device");
    const c10::cuda::CUDAGuard guard(device_);
    position_ = inputs["position"].contiguous();
    sample_key_ = inputs["sample_key"].contiguous();
    local_id_ = inputs["local_id"].contiguous();
    pack(inputs);
    const auto make = [&](at::IntArrayRef shape) { return at::empty(shape, carried_.options()); };
    const std::int64_t flows = shape_.flows;
    operand_ = bf16_ ? at::empty(carried_.sizes(), carried_.options().dtype(at::kBFloat16)) : carried_;
    sums_ = make({flows, columns_.all});
    if (keep) activated_ = make({flows, columns_.all}), second_sums_ = make({flows, kFloatsOfSums});
    energy_ = make({flows}), displacement_ = make({flows, 3}), delta_ = make({flows, 3}), raw_ = make({flows, 3});
    spawn_measure_ = make({flows}), child_energy_ = make({flows});
    spawn_count_ = at::empty({flows}, carried_.options().dtype(at::kInt));
  }

  void run() override {
    if (shape_.flows == 0) return;
    const c10::cuda::CUDAGuard guard(device_);
    if (bf16_) ops::launch_round_to_bf16({data(carried_), bf16_data(operand_), carried_.numel()}, stream());
    multiply(sums_, operand_, first_weight_t_);
    ops::HeadsArguments a{};
    a.rule = rule_, a.columns = columns_, a.flows = shape_.flows, a.round = bf16_ ? 1 : 0;
    a.sums = data(sums_), a.bias = data(first_bias_), a.out_bias = data(out_bias_);
    a.energy_out_weight = data(energy_out_weight_), a.gate_out_weight = data(gate_out_weight_);
    a.displacement_out_weight = data(displacement_out_weight_), a.position = data(position_);
    a.sample_key = keys(sample_key_), a.local_id = keys(local_id_);
    a.energy = data(energy_), a.displacement = data(displacement_), a.delta = data(delta_), a.raw = data(raw_);
    a.spawn_measure = data(spawn_measure_), a.child_energy = data(child_energy_);
    a.spawn_count = static_cast<std::int32_t*>(spawn_count_.mutable_data_ptr());
    if (activated_.defined()) a.activated = data(activated_), a.second_sums = second_sums();
    ops::launch_carrier_heads(a, stream());
  }

  Values outputs() override {
    return {{"energy", energy_},           {"displacement", displacement_},   {"delta", delta_},
            {"raw", raw_},                 {"spawn_measure", spawn_measure_}, {"spawn_count", spawn_count_},
            {"child_energy", child_energy_}};
  }

 protected:
  static constexpr std::int64_t kFloatsOfSums = sizeof(ops::HeadSums) / sizeof(float);
  ops::HeadSums* second_sums() const { return static_cast<ops::HeadSums*>(second_sums_.mutable_data_ptr()); }

  HeadsShape shape_;
  HeadsOptions options_;
  ops::HeadsRule rule_;
  ops::HeadColumns columns_;
  bool bf16_;
  c10::Device device_;
  at::Tensor carried_, operand_;                    // as given, and as the product takes it
  at::Tensor first_weight_, first_bias_;            // [all, hidden], [all]; zeros in the padding
  at::Tensor energy_out_weight_, displacement_out_weight_;
  at::Tensor sums_, activated_, second_sums_;       // [flows, all] before and after GELU; [flows] HeadSums
  at::Tensor spawn_count_;

 private:
  void pack(const Values& inputs) {
    const auto rounded = [this](const at::Tensor& t) {
      return (bf16_ ? t.to(at::kBFloat16).to(at::kFloat) : t).contiguous();
    };
    std::vector<at::Tensor> weights = {inputs["energy_hidden_weight"], inputs["displacement_hidden_weight"]};
    std::vector<at::Tensor> biases = {inputs["energy_hidden_bias"], inputs["displacement_hidden_bias"]};
    if (options_.gate) {
      weights.insert(weights.end(), {inputs["child_weight"], inputs["gate_hidden_weight"]});
      biases.insert(biases.end(), {inputs["child_bias"], inputs["gate_hidden_bias"]});
    }
    first_weight_ = at::cat(weights, 0);
    const std::int64_t padding = columns_.all - first_weight_.size(0);
    first_weight_ = at::constant_pad_nd(first_weight_, {0, 0, 0, padding}).contiguous();
    if (bf16_) first_weight_ = first_weight_.to(at::kBFloat16);
    first_weight_t_ = first_weight_.t();
    first_bias_ = at::constant_pad_nd(at::cat(biases, 0), {0, padding}).contiguous();
    energy_out_weight_ = rounded(inputs["energy_out_weight"]);
    displacement_out_weight_ = rounded(inputs["displacement_out_weight"]);
    gate_out_weight_ = rounded(inputs["gate_out_weight"]);
    out_bias_ = at::cat({inputs["energy_out_bias"], inputs["displacement_out_bias"], inputs["gate_out_bias"]}).contiguous();
  }

  at::Tensor position_, sample_key_, local_id_, first_weight_t_, gate_out_weight_, out_bias_;
  at::Tensor energy_, displacement_, delta_, raw_, spawn_measure_, child_energy_;
};

// Forward, then one kernel to the sums' gradients, the bias sums, and four products for weights and state.
class CudaHeadsBackward final : public CudaHeads {
 public:
  CudaHeadsBackward(const Values& inputs, const Setting& setting) : CudaHeads(inputs, setting, true) {
    const c10::cuda::CUDAGuard guard(device_);
    for (const char* name : {"grad_energy", "grad_displacement", "grad_delta", "grad_raw", "grad_child_energy"})
      given_.push_back(inputs[name].contiguous());
    const auto options = carried_.options();
    const std::int64_t flows = shape_.flows;
    trained_ = columns_.child() + (options_.gate ? 1 : 0);
    grad_second_ = at::zeros({flows, kSecondSums}, options);
    second_operand_ = bf16_ ? at::zeros_like(grad_second_) : grad_second_;
    if (bf16_) grad_sums_bf16_ = at::zeros({flows, columns_.all}, options.dtype(at::kBFloat16));
    grad_carried_ = at::zeros_like(carried_);
    grad_first_weight_ = at::zeros({trained_, shape_.hidden}, options);
    grad_first_bias_ = at::zeros({trained_}, options);
    grad_energy_out_ = at::zeros({1, shape_.energy_width}, options);
    grad_displacement_out_ = at::zeros({3, shape_.head_width}, options);
    grad_out_bias_ = at::zeros({kSecondSums}, options);
    no_child_weight_ = at::zeros({1, shape_.hidden}, options);
    no_child_bias_ = at::zeros({1}, options);
    trained_sums_ = (bf16_ ? grad_sums_bf16_ : sums_).narrow(1, 0, trained_);
    trained_sums_t_ = trained_sums_.t();
    trained_weight_ = first_weight_.narrow(0, 0, trained_);
    grad_energy_sum_t_ = second_operand_.narrow(1, 0, 1).t();
    grad_displacement_sum_t_ = second_operand_.narrow(1, 1, 3).t();
    activated_energy_ = activated_.narrow(1, 0, shape_.energy_width);
    activated_displacement_ = activated_.narrow(1, shape_.energy_width, shape_.head_width);
  }

  void run() override {
    CudaHeads::run();
    if (shape_.flows == 0) return;
    const c10::cuda::CUDAGuard guard(device_);
    ops::HeadsBackwardArguments a{};
    a.rule = rule_, a.columns = columns_, a.flows = shape_.flows;
    a.second_operand = bf16_ ? data(second_operand_) : nullptr;
    a.bias = data(first_bias_), a.energy_out_weight = data(energy_out_weight_);
    a.displacement_out_weight = data(displacement_out_weight_), a.second_sums = second_sums();
    a.spawn_count = static_cast<const std::int32_t*>(spawn_count_.const_data_ptr());
    a.grad_energy = data(given_[0]), a.grad_displacement = data(given_[1]), a.grad_delta = data(given_[2]);
    a.grad_raw = data(given_[3]), a.grad_child_energy = data(given_[4]);
    a.sums = data(sums_), a.grad_sums_bf16 = bf16_data(grad_sums_bf16_), a.grad_second = data(grad_second_);
    ops::launch_carrier_heads_backward(a, stream());
    sum_columns(sums_, grad_first_bias_);
    sum_columns(grad_second_, grad_out_bias_);
    // The small products take rounded values kept in fp32, which gives the same numbers as bf16 operands would.
    at::mm_out(grad_energy_out_, grad_energy_sum_t_, activated_energy_);
    at::mm_out(grad_displacement_out_, grad_displacement_sum_t_, activated_displacement_);
    multiply(grad_first_weight_, trained_sums_t_, operand_);
    multiply(grad_carried_, trained_sums_, trained_weight_);
  }

  Values outputs() override {
    const std::int64_t energy = shape_.energy_width, width = shape_.head_width, child = columns_.child();
    const auto weight = [&](std::int64_t from, std::int64_t count) { return grad_first_weight_.narrow(0, from, count); };
    const auto bias = [&](std::int64_t from, std::int64_t count) { return grad_first_bias_.narrow(0, from, count); };
    return {{"grad_carried", grad_carried_},
            {"grad_position", given_[3]},  // raw = position + delta + noise
            {"grad_energy_hidden_weight", weight(0, energy)},
            {"grad_energy_hidden_bias", bias(0, energy)},
            {"grad_energy_out_weight", grad_energy_out_},
            {"grad_energy_out_bias", grad_out_bias_.narrow(0, 0, 1)},
            {"grad_displacement_hidden_weight", weight(energy, width)},
            {"grad_displacement_hidden_bias", bias(energy, width)},
            {"grad_displacement_out_weight", grad_displacement_out_},
            {"grad_displacement_out_bias", grad_out_bias_.narrow(0, 1, 3)},
            {"grad_child_weight", options_.gate ? weight(child, 1) : no_child_weight_},
            {"grad_child_bias", options_.gate ? bias(child, 1) : no_child_bias_}};
  }

 private:
  static constexpr std::int64_t kSecondSums = 4;  // energy, displacement x y z

  void sum_columns(const at::Tensor& rows, const at::Tensor& sums) {
    ops::launch_column_sums({data(rows), data(sums), shape_.flows, static_cast<std::int32_t>(sums.numel()),
                             static_cast<std::int32_t>(rows.size(1))},
                            stream());
  }

  std::int64_t trained_ = 0;  // leading columns that the loss can reach
  std::vector<at::Tensor> given_;
  at::Tensor grad_second_, second_operand_, grad_sums_bf16_, grad_carried_, grad_first_weight_, grad_first_bias_;
  at::Tensor grad_energy_out_, grad_displacement_out_, grad_out_bias_, no_child_weight_, no_child_bias_;
  at::Tensor trained_sums_, trained_sums_t_, trained_weight_, grad_energy_sum_t_, grad_displacement_sum_t_;
  at::Tensor activated_energy_, activated_displacement_;
};

}  // namespace

std::unique_ptr<Runnable> energy_flow_carrier_heads_optimized_cuda(const Values& inputs, const Setting& setting) {
  if (setting.values.pass == Pass::kBackward) return std::make_unique<CudaHeadsBackward>(inputs, setting);
  return std::make_unique<CudaHeads>(inputs, setting, false);
}

}  // namespace twinbench

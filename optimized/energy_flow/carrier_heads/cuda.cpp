// energy_flow.carrier_heads, optimized on CUDA: one cuBLAS product for all first layers and one kernel that finishes
// every flow. In bf16 mode one kernel more rounds the state, which the carrier itself would write rounded.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include "kernels/energy_flow/carrier_heads/arguments.h"
#include "kernels/energy_flow/energy_carrier/arguments.h"
#include "optimized/energy_flow/carrier_heads/pack.h"
#include "src/common/error.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

using energy_flow::carrier_heads::HeadsGradients;
using energy_flow::carrier_heads::HeadsResults;
using energy_flow::carrier_heads::PackedHeads;
namespace ops = energy_flow::carrier_heads;

constexpr std::int64_t kAlignment = 8;  // columns: tensor cores need aligned rows

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

const at::Tensor& on_cuda(const at::Tensor& carried) {
  if (carried.is_cuda()) return carried;
  throw Error(ErrorKind::kMissingDevice, "carried", carried.device().str(), "give the inputs on a CUDA device");
}

class CudaHeads : public Runnable {
 public:
  CudaHeads(const NamedTensors& inputs, const Setting& setting, bool keep)
      : packed_(energy_flow::carrier_heads::pack_heads(inputs, setting, kAlignment)),
        rule_(energy_flow::carrier_heads::heads_rule<float>(packed_.options)),
        carried_(on_cuda(inputs["carried"]).contiguous()),
        position_(inputs["position"].contiguous()),
        sample_key_(inputs["sample_key"].contiguous()),
        local_id_(inputs["local_id"].contiguous()),
        results_(HeadsResults::make(flows(), carried_.options())) {
    const auto make = [&](std::int64_t columns) { return at::empty({flows(), columns}, carried_.options()); };
    // Rounded already: bf16 changes the type, not the values.
    if (packed_.round) packed_.first_weight = packed_.first_weight.to(at::kBFloat16);
    first_weight_t_ = packed_.first_weight.t();
    operand_ = packed_.round ? at::empty(carried_.sizes(), carried_.options().dtype(at::kBFloat16)) : carried_;
    sums_ = make(columns().all);
    if (keep) activated_ = make(columns().all), second_sums_ = make(kFloatsOfSums);
  }

  void run() override {
    if (flows() == 0) return;
    const c10::cuda::CUDAGuard guard(carried_.device());
    if (packed_.round) ops::launch_round_to_bf16({data(carried_), bf16_data(operand_), carried_.numel()}, stream());
    multiply(sums_, operand_, first_weight_t_);
    ops::HeadsArguments a{};
    a.rule = rule_, a.columns = columns(), a.flows = flows(), a.round = packed_.round ? 1 : 0;
    a.sums = data(sums_), a.bias = data(packed_.first_bias), a.out_bias = data(packed_.out_bias);
    a.energy_out_weight = data(packed_.energy_out_weight), a.gate_out_weight = data(packed_.gate_out_weight);
    a.displacement_out_weight = data(packed_.displacement_out_weight), a.position = data(position_);
    a.sample_key = keys(sample_key_), a.local_id = keys(local_id_);
    a.energy = data(results_.energy), a.displacement = data(results_.displacement), a.delta = data(results_.delta);
    a.raw = data(results_.raw), a.spawn_measure = data(results_.spawn_measure);
    a.child_energy = data(results_.child_energy);
    a.spawn_count = static_cast<std::int32_t*>(results_.spawn_count.mutable_data_ptr());
    if (activated_.defined()) a.activated = data(activated_), a.second_sums = second_sums();
    ops::launch_carrier_heads(a, stream());
  }

  NamedTensors outputs() override { return results_.named(); }

 protected:
  static constexpr std::int64_t kFloatsOfSums = sizeof(ops::HeadSums) / sizeof(float);
  ops::HeadSums* second_sums() const { return static_cast<ops::HeadSums*>(second_sums_.mutable_data_ptr()); }
  std::int64_t flows() const { return packed_.shape.flows; }
  const ops::HeadColumns& columns() const { return packed_.columns; }

  PackedHeads packed_;  // in bf16 mode its first_weight is bf16 here
  ops::HeadsRule rule_;
  at::Tensor carried_, position_, sample_key_, local_id_;
  HeadsResults results_;
  at::Tensor operand_, first_weight_t_;        // carried_ and first_weight as the product takes them
  at::Tensor sums_, activated_, second_sums_;  // [flows, all] before and after GELU; [flows] HeadSums
};

// Forward, then one kernel to the sums' gradients, the bias sums, and four products for weights and state.
class CudaHeadsBackward final : public CudaHeads {
 public:
  CudaHeadsBackward(const NamedTensors& inputs, const Setting& setting)
      : CudaHeads(inputs, setting, true), gradients_(packed_, inputs) {
    if (packed_.round) grad_sums_bf16_ = at::zeros(sums_.sizes(), carried_.options().dtype(at::kBFloat16));
    trained_sums_ = (packed_.round ? grad_sums_bf16_ : sums_).narrow(1, 0, packed_.trained());
    trained_sums_t_ = trained_sums_.t();
    trained_weight_ = packed_.first_weight.narrow(0, 0, packed_.trained());
    activated_energy_ = activated_.narrow(1, 0, columns().energy_width);
    activated_displacement_ = activated_.narrow(1, columns().displacement(), columns().head_width);
  }

  void run() override {
    CudaHeads::run();
    if (flows() == 0) return;
    const c10::cuda::CUDAGuard guard(carried_.device());
    ops::HeadsBackwardArguments a{};
    a.rule = rule_, a.columns = columns(), a.flows = flows();
    a.second_operand = packed_.round ? data(gradients_.second_operand) : nullptr;
    a.bias = data(packed_.first_bias), a.energy_out_weight = data(packed_.energy_out_weight);
    a.displacement_out_weight = data(packed_.displacement_out_weight), a.second_sums = second_sums();
    a.spawn_count = static_cast<const std::int32_t*>(results_.spawn_count.const_data_ptr());
    a.grad_energy = data(gradients_.energy), a.grad_displacement = data(gradients_.displacement);
    a.grad_delta = data(gradients_.delta), a.grad_raw = data(gradients_.raw);
    a.grad_child_energy = data(gradients_.child_energy);
    a.sums = data(sums_), a.grad_sums_bf16 = bf16_data(grad_sums_bf16_), a.grad_second = data(gradients_.second);
    ops::launch_carrier_heads_backward(a, stream());
    sum_columns(sums_, gradients_.first_bias);
    sum_columns(gradients_.second, gradients_.out_bias);
    // The small products take rounded values kept in fp32, which gives the same numbers as bf16 operands would.
    at::mm_out(gradients_.energy_out_weight, gradients_.energy_operand_t, activated_energy_);
    at::mm_out(gradients_.displacement_out_weight, gradients_.displacement_operand_t, activated_displacement_);
    multiply(gradients_.first_weight, trained_sums_t_, operand_);
    multiply(gradients_.carried, trained_sums_, trained_weight_);
  }

  NamedTensors outputs() override { return gradients_.named(packed_); }

 private:
  void sum_columns(const at::Tensor& rows, const at::Tensor& sums) {
    ops::launch_column_sums({data(rows), data(sums), flows(), static_cast<std::int32_t>(sums.numel()),
                             static_cast<std::int32_t>(rows.size(1))},
                            stream());
  }

  HeadsGradients gradients_;
  at::Tensor grad_sums_bf16_;
  at::Tensor trained_sums_, trained_sums_t_, trained_weight_, activated_energy_, activated_displacement_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  if (setting.input_case.pass == Pass::kBackward) return std::make_unique<CudaHeadsBackward>(inputs, setting);
  return std::make_unique<CudaHeads>(inputs, setting, false);
}

}  // namespace twinbench::energy_flow::carrier_heads

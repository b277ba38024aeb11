// energy_flow.carrier_heads, optimized on CUDA: one cuBLAS product for all first layers and one kernel that finishes
// every flow. In bf16 mode one kernel more rounds the state, which the carrier itself would write rounded. Backward two
// kernels, which give every sum over flows but the first layers' weight gradients, and two products.
#include "optimized/common/cuda.h"
#include "optimized/common/products.h"
#include "optimized/energy_flow/carrier_heads/heads.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

constexpr std::int64_t kAlignment = 8;  // columns: tensor cores need aligned rows

class CudaHeads final : public Heads<float> {
 public:
  CudaHeads(const NamedTensors& inputs, const Setting& setting) : Heads(inputs, setting, at::kBFloat16, kAlignment) {
    if (!setting.backward()) return;
    const BackwardPlan plan = backward_plan(flows(), columns(), gate());
    const auto zeros = [&](at::IntArrayRef shape) { return at::zeros(shape, sums_.options()); };
    partial_ = zeros({plan.blocks, plan.stride()});
    flow_sums_ = zeros({plan.sums()});
    backward_arguments_.plan = plan;
    backward_arguments_.partial = data<float>(partial_);
    backward_arguments_.flow_sums = data<float>(flow_sums_);
    const auto part = [&](std::int64_t from, at::IntArrayRef shape) {
      return flow_sums_.narrow(0, from, c10::multiply_integers(shape)).view(shape);
    };
    set_bias_gradients(flow_sums_);
    set_gradient("energy_out_weight", part(plan.energy_weight(), {1, plan.energy_width}));
    set_gradient("displacement_out_weight", part(plan.displacement_weight(), {3, plan.head_width}));
    set_gradient("energy_out_bias", part(plan.out_bias(), {1}));
    set_gradient("displacement_out_bias", part(plan.out_bias() + 1, {3}));
  }

 private:
  void product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) override { multiply(out, a, b); }
  void round_operand(const at::Tensor& from, const at::Tensor& to) override {
    kernels::launch_round_to_bf16(
        {.values = data<float>(from), .rounded = data<std::uint16_t>(to), .count = from.numel()}, stream());
  }
  void finish(const ForwardArguments<float>& a) override { launch_forward(a, stream()); }
  void differentiate(const BackwardArguments<float>& a) override { launch_backward(a, stream()); }

  at::Tensor partial_, flow_sums_;  // see BackwardPlan
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaHeads>(inputs, setting);
}

}  // namespace twinbench::energy_flow::carrier_heads

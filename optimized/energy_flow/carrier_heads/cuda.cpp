// energy_flow.carrier_heads, optimized on CUDA: one cuBLAS product for all first layers and one kernel that finishes
// every flow. In bf16 mode one kernel more rounds the state, which the carrier itself would write rounded.
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/carrier_heads/heads.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

constexpr std::int64_t kAlignment = 8;  // columns: tensor cores need aligned rows

class CudaHeads final : public Heads<float> {
 public:
  CudaHeads(const NamedTensors& inputs, const Setting& setting) : Heads(inputs, setting, at::kBFloat16, kAlignment) {}

 private:
  void round_operand(const at::Tensor& from, const at::Tensor& to) override {
    kernels::launch_round_to_bf16(
        {.values = data<float>(from), .rounded = data<std::uint16_t>(to), .count = from.numel()}, stream());
  }
  void finish(const ForwardArguments<float>& a) override { launch_forward(a, stream()); }
  void differentiate(const BackwardArguments<float>& a) override { launch_backward(a, stream()); }
  void sum_columns(const at::Tensor& rows, const at::Tensor& sums) override {
    kernels::launch_column_sums({.rows = data<float>(rows),
                                 .sums = data<float>(sums),
                                 .count = rows.size(0),
                                 .columns = static_cast<std::int32_t>(sums.numel()),
                                 .stride = static_cast<std::int32_t>(rows.size(1))},
                                stream());
  }
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaHeads>(inputs, setting);
}

}  // namespace twinbench::energy_flow::carrier_heads

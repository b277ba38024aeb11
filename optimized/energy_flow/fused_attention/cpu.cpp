// Optimized energy_flow.fused_attention on the CPU: tiles of queries in vector lanes, no matrix of scores.
#include "optimized/energy_flow/common/attention_loops.h"
#include "optimized/energy_flow/fused_attention/attention.h"

namespace twinbench::energy_flow::fused_attention {
namespace {

template <class Real>
class CpuAttention final : public FusedAttention<Real> {
 public:
  CpuAttention(const NamedTensors& inputs, const Setting& setting)
      : FusedAttention<Real>(inputs, setting),
        loops_(setting.size("batch") * setting.size("heads"), setting.size("queries"), setting.size("keys"),
               setting.size("width"), setting.backward()) {}

  void run_forward() override { loops_.forward(this->attention_); }
  void run_backward() override { loops_.backward(this->attention_); }

 private:
  const AttentionLoops<Real> loops_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuAttention<double>>(inputs, setting);
  return std::make_unique<CpuAttention<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::fused_attention

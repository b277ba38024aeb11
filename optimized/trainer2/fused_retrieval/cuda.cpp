// Optimized trainer2.fused_retrieval on CUDA: one kernel, whose shape the filled count does not change; 0 reads.
#include <ATen/ATen.h>

#include "kernels/trainer2/fused_retrieval/arguments.h"
#include "optimized/common/cuda.h"
#include "optimized/trainer2/fused_retrieval/plan.h"

namespace twinbench::trainer2::fused_retrieval {
namespace {

at::Tensor as_stored(const at::Tensor& states, Dtype dtype) {
  const auto type = dtype == Dtype::kFp16 ? at::kHalf : dtype == Dtype::kBf16 ? at::kBFloat16 : at::kFloat;
  return states.to(type).contiguous();
}

class CudaRetrieval final : public Plan {
 public:
  CudaRetrieval(const NamedTensors& inputs, const Setting& setting)
      : Plan(inputs, setting, as_stored(inputs["bank_states"], setting.dtype)) {
    const std::int64_t batch = setting.size("batch"), width = setting.size("width");
    const std::int64_t tokens = setting.size("tokens"), capacity = setting.size("capacity");
    const Split split = split_of(batch, tokens, capacity);
    const auto floats = inputs["query"].options();
    heads_ = at::empty({batch, split.parts(), 4}, floats);
    mixes_ = at::empty({batch, split.parts(), width}, floats);
    costs_ = at::empty({setting.size("inspected") > 0 ? batch : 0, tokens + capacity}, floats);
    finished_ = at::zeros({split.tiles}, floats.dtype(at::kInt));
    arguments_.split = split;
    arguments_.heads = data<float>(heads_);
    arguments_.mixes = data<float>(mixes_);
    arguments_.costs = setting.size("inspected") > 0 ? data<float>(costs_) : nullptr;
    arguments_.finished = reinterpret_cast<unsigned*>(data<std::int32_t>(finished_));
  }

  void run() override { launch(arguments_, stream()); }

 private:
  at::Tensor heads_, mixes_, costs_, finished_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaRetrieval>(inputs, setting);
}

}  // namespace twinbench::trainer2::fused_retrieval

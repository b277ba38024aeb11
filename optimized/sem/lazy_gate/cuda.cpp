// Optimized sem.lazy_gate on CUDA: one kernel a call, gate and solver in it; 0 reads.
#include <ATen/ATen.h>

#include "optimized/common/cuda.h"
#include "optimized/sem/lazy_gate/folded_graph.h"

namespace twinbench::sem::lazy_gate {
namespace {

class CudaLazyGate final : public Runnable {
 public:
  CudaLazyGate(const NamedTensors& inputs, const Setting& setting)
      : calls_(setting.size("calls")),
        graph_(inputs, setting),
        field_(inputs["field"].contiguous()),
        given_(inputs["cache"].contiguous()),
        handover_(at::zeros({4}, field_.options().dtype(at::kInt))),
        results_(zero_results(setting)) {
    const std::int64_t rows = setting.size("rows"), dim = setting.size("dim");
    call_ = {.rows = rows,
             .plane = calls_ * rows * dim,
             .dim = static_cast<int>(dim),
             .rule = rule_of(setting),
             .graph = graph_.graph(),
             .cache = data<float>(results_["cache"]),
             .handover = reinterpret_cast<unsigned*>(data<std::int32_t>(handover_))};
    CudaLazyGate::reset();
  }

  void reset() override { results_["cache"].copy_(given_); }

  void run() override {
    CallArguments one = call_;
    for (std::int64_t call = 0; call < calls_; ++call) {
      const std::int64_t at = call * call_.rows * call_.dim;
      one.field = field_.const_data_ptr<float>() + at;
      one.x = data<float>(results_["x"]) + at;
      one.nonfinite_rows = data<std::int32_t>(results_["nonfinite_rows"]) + call;
      one.skipped = data<std::int32_t>(results_["skipped"]) + call;
      one.iterations = data<std::int32_t>(results_["iterations"]) + call;
      launch_call(one, stream());
    }
  }

  NamedTensors outputs() override { return results_; }

 private:
  std::int64_t calls_;
  FoldedGraph graph_;
  at::Tensor field_, given_, handover_;
  NamedTensors results_;  // the advanced cache among them
  CallArguments call_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaLazyGate>(inputs, setting);
}

}  // namespace twinbench::sem::lazy_gate

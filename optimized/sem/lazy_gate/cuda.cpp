// Optimized sem.lazy_gate on CUDA: one kernel a call, gate and solver in it; on the way back one a call, a product of
// the library and one kernel over all calls. 0 reads.
#include <ATen/ATen.h>

#include "optimized/common/cuda.h"
#include "optimized/sem/common/edge_factors.h"
#include "optimized/sem/lazy_gate/folded_graph.h"

namespace twinbench::sem::lazy_gate {
namespace {

class CudaLazyGate final : public Runnable {
 public:
  CudaLazyGate(const NamedTensors& inputs, const Setting& setting)
      : backward_(setting.backward()),
        calls_(setting.size("calls")),
        graph_(FoldedGraph(inputs, setting)),
        field_(inputs["field"].contiguous()),
        keys_(inputs["keys"].contiguous()),
        given_(inputs["cache"].contiguous()),
        given_entry_(inputs["entry"].contiguous()),
        handover_(at::zeros({kHandover}, field_.options().dtype(at::kInt))),
        forward_results_(zero_results(forward_of(setting))) {
    if (backward_) results_ = zero_results(setting);
    counts_ = counts_of(setting, backward_ ? results_ : forward_results_);
    const std::int64_t rows = setting.size("rows"), dim = setting.size("dim");
    call_ = {.rows = rows,
             .plane = calls_ * rows * dim,
             .dim = static_cast<int>(dim),
             .rule = rule_of(setting),
             .keyed = setting.option("gate_policy") != 0,
             .graph = graph_.graph(),
             .cache = data<float>(forward_results_["cache"]),
             .entry = data<std::int64_t>(forward_results_["entry"]),
             .count_stride = calls_,
             .handover = reinterpret_cast<unsigned*>(data<std::int32_t>(handover_))};
    if (backward_) set_up_backward(inputs, setting);
    CudaLazyGate::reset();
  }

  void reset() override {
    forward_results_["cache"].copy_(given_);
    forward_results_["entry"].copy_(given_entry_);
  }

  void run() override {
    for (std::int64_t call = 0; call < calls_; ++call) run_call(call);
    if (!backward_) return;
    for (std::int64_t call = 0; call < calls_; ++call) run_adjoint(call);
    multiply(product_, z_.t(), y_);
    launch_edges(edges_.arguments(), stream());
  }

  NamedTensors outputs() override { return backward_ ? results_ : forward_results_; }

 private:
  void set_up_backward(const NamedTensors& inputs, const Setting& setting) {
    given_gradient_ = inputs["grad_x"].contiguous();
    z_ = at::empty({2 * calls_ * call_.rows, call_.dim}, field_.options());
    y_ = at::empty_like(z_);
    product_ = at::empty({call_.dim, call_.dim}, field_.options());
    edges_in_turn_ = at::zeros({1}, handover_.options());
    edges_ = EdgesOnDevice(inputs, setting, product_, results_, data<std::int32_t>(edges_in_turn_));
    adjoint_ = {.rows = call_.rows,
                .plane = call_.plane,
                .dim = call_.dim,
                .rule = call_.rule,
                .graph = call_.graph,
                .handover = call_.handover};
    adjoint_.rule.gate_tolerance = 0;
  }

  std::int64_t at(std::int64_t call) const { return call * call_.rows * call_.dim; }

  void run_call(std::int64_t call) {
    CallArguments one = call_;
    one.field = field_.const_data_ptr<float>() + at(call);
    one.key = keys_.const_data_ptr<std::int64_t>() + 2 * call;
    one.x = data<float>(forward_results_["x"]) + at(call);
    one.counts = data<std::int32_t>(counts_) + call;
    one.largest_residual = data<float>(forward_results_["largest_residual"]) + call;
    launch_call(one, stream());
  }
  void run_adjoint(std::int64_t call) {
    AdjointArguments one = adjoint_;
    one.field = field_.const_data_ptr<float>() + at(call);
    one.x = forward_results_["x"].const_data_ptr<float>() + at(call);
    one.grad_x = given_gradient_.const_data_ptr<float>() + at(call);
    one.grad_field = data<float>(results_["grad_field"]) + at(call);
    one.z = data<float>(z_) + at(call);
    one.y = data<float>(y_) + at(call);
    one.iterations = data<std::int32_t>(counts_) + kAdjointIterations * calls_ + call;
    launch_adjoint(one, stream());
  }

  bool backward_;
  std::int64_t calls_;
  SlicedGraph graph_;
  at::Tensor field_, keys_, given_, given_entry_, handover_;
  NamedTensors forward_results_, results_;  // the advanced cache and its entry among the former
  at::Tensor counts_;                       // [kCounts, calls]
  at::Tensor given_gradient_, z_, y_, product_, edges_in_turn_;
  EdgesOnDevice edges_;
  CallArguments call_;
  AdjointArguments adjoint_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaLazyGate>(inputs, setting);
}

}  // namespace twinbench::sem::lazy_gate

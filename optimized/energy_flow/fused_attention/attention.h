// What both paths of energy_flow.fused_attention share: checked inputs, results, and how they lie.
#pragma once

#include <ATen/ops/empty.h>

#include <cmath>
#include <utility>
#include <vector>

#include "kernels/energy_flow/common/attention.h"
#include "optimized/common/tensors.h"
#include "optimized/common/two_halves.h"

namespace twinbench::energy_flow::fused_attention {

template <class Real>
class FusedAttention : public TwoHalves {
 public:
  FusedAttention(const NamedTensors& inputs, const Setting& setting)
      : backward_(setting.backward()), inputs_(inputs), forward_results_(zero_results(forward_of(setting))) {
    const std::int64_t batch = setting.size("batch"), heads = setting.size("heads");
    attention_ = {.batch = static_cast<int>(batch),
                  .heads = static_cast<int>(heads),
                  .queries = static_cast<int>(setting.size("queries")),
                  .keys = static_cast<int>(setting.size("keys")),
                  .width = static_cast<int>(setting.size("width")),
                  .scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(setting.size("width")))),
                  .round = rounds_operands(setting),
                  .query = rows_of("query"),
                  .key = rows_of("key"),
                  .value = rows_of("value"),
                  .padding = given<bool>(inputs_, "padding"),
                  .out = rows_of(forward_results_["out"])};
    if (!backward_) return;
    statistics_ = at::empty({3, batch * heads * setting.size("queries")}, inputs["query"].options());
    attention_.largest = data<Real>(statistics_[0]);
    attention_.denominator = data<Real>(statistics_[1]);
    attention_.share = data<Real>(statistics_[2]);
    attention_.grad_out = rows_of("grad_out");
    gradients_ = zero_results(setting);
    attention_.grad_query = rows_of(gradients_["grad_query"]);
    attention_.grad_key = rows_of(gradients_["grad_key"]);
    attention_.grad_value = rows_of(gradients_["grad_value"]);
  }

  void run() override {
    run_forward();
    if (backward_) run_backward();
  }
  NamedTensors forward_outputs() override { return forward_results_; }
  std::vector<at::Tensor> kept() override { return {forward_results_["out"], statistics_}; }
  NamedTensors outputs() override { return backward_ ? gradients_ : forward_results_; }

 protected:
  Attention<Real> attention_;

 private:
  static HeadRows<Real> rows_of(const at::Tensor& rows) {
    return {data<Real>(rows), rows.stride(0), rows.stride(1), rows.stride(2)};
  }
  // The rows of an input in order; any order of samples, heads and rows is taken as it is.
  HeadRows<const Real> rows_of(const char* name) {
    at::Tensor rows = inputs_[name];
    if (rows.stride(3) != 1) inputs_.set(name, rows = rows.contiguous());
    return {rows.const_data_ptr<Real>(), rows.stride(0), rows.stride(1), rows.stride(2)};
  }

  const bool backward_;
  NamedTensors inputs_, forward_results_, gradients_;
  at::Tensor statistics_;  // [3][batch, heads, queries]
};

}  // namespace twinbench::energy_flow::fused_attention

// Baseline of energy_flow.fused_attention: every step of the softmax an operator, two matrices of scores in memory.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "baselines/common/layers.h"
#include "baselines/common/tape.h"
#include "src/rounding.h"

namespace twinbench::energy_flow::fused_attention {
namespace {

class Baseline final : public TapeBaseline {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting) : TapeBaseline(inputs, setting) { make_leaves(); }

 private:
  // [batch, heads, rows, width] -> [batch * heads, rows, width], a view.
  at::Tensor heads(const char* name) const { return baseline_operand(inputs_[name], round_).flatten(0, 1); }

  void compute() override {
    const at::Tensor query = heads("query"), key = heads("key"), value = heads("value");
    const std::int64_t batch = setting_.size("batch"), keys = setting_.size("keys");
    at::Tensor scores = query.bmm(key.transpose(1, 2));
    scores.mul_(1 / std::sqrt(static_cast<double>(setting_.size("width"))));
    scores.view({batch, setting_.size("heads"), setting_.size("queries"), keys})
        .masked_fill_(inputs_["padding"].view({batch, 1, 1, keys}), -std::numeric_limits<double>::infinity());
    at::Tensor weights = scores - scores.amax(-1, true);
    weights.exp_();
    const at::Tensor sum = weights.sum(-1, true);
    weights = backward_ ? weights / sum : weights.div_(sum);  // the tape keeps the exponentials
    const at::Tensor out = weights.bmm(value).view_as(inputs_["query"]);
    if (backward_)
      root(out, rounded(inputs_["grad_out"], setting_.rounds_as()));  // an operand of both products back
    else
      result("out", out);
  }
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::fused_attention

// Baseline of energy_flow.embedding_mapper: one row at a time, ten operators each, every one with its own temporary.
#include <ATen/ATen.h>

#include "baselines/common/tape.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

class Baseline : public TapeBaseline {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting) : TapeBaseline(inputs, setting) { make_leaves(); }

 private:
  // embedding [1, E] -> surface [1, S]
  at::Tensor one_row(const at::Tensor& embedding) const {
    const at::Tensor first = layer_norm(at::gelu(linear(embedding, "weight_1", "bias_1")), "gain_1", "shift_1");
    const at::Tensor second = layer_norm(at::gelu(linear(first, "weight_2", "bias_2")), "gain_2", "shift_2");
    const at::Tensor bounded = at::tanh(linear(second, "weight_3", "bias_3"));
    const at::Tensor scaled = at::addcmul(inputs_["offset"], bounded, inputs_["scale"]);
    return scaled + inputs_["cell_offset"].reshape({1, -1});
  }

  void compute() override {
    const at::Tensor& embedding = inputs_["embedding"];
    if (embedding.size(0) == 0)
      return result("surface", embedding.new_empty({0, setting_.size("cells")}).requires_grad_(backward_));
    std::vector<at::Tensor> rows;
    for (const at::Tensor& row : embedding.split(1)) rows.push_back(one_row(row));
    result("surface", at::cat(rows, 0));
  }
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::embedding_mapper

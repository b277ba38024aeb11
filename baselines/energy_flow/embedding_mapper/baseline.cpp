// Baseline of energy_flow.embedding_mapper: one row at a time, ten operators each, every one with its own temporary.
#include <ATen/ATen.h>

#include "baselines/common/autograd_baseline.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

constexpr double kLayerNormEpsilon = 1e-5;
const std::vector<std::string> kDifferentiable = {"embedding", "weight_1", "bias_1", "gain_1",   "shift_1",
                                                  "weight_2",  "bias_2",   "gain_2", "shift_2",  "weight_3",
                                                  "bias_3",    "scale",    "offset", "cell_offset"};

class EmbeddingMapperBaseline : public AutogradBaseline {
 public:
  EmbeddingMapperBaseline(const NamedTensors& inputs, const Setting& setting)
      : AutogradBaseline(inputs, setting, "surface", kDifferentiable), round_(setting.dtype == Dtype::kBf16) {
    if (round_)
      for (const char* name : {"weight_1", "weight_2", "weight_3"}) inputs_.set(name, rounded_to_bf16(inputs_[name]));
    make_leaves();
  }

 private:
  at::Tensor linear(const at::Tensor& x, const char* weight, const char* bias) const {
    return baseline_linear(x, inputs_[weight], inputs_[bias], round_);
  }

  at::Tensor normalized(const at::Tensor& x, const char* gain, const char* shift) const {
    return at::layer_norm(x, {x.size(1)}, inputs_[gain], inputs_[shift], kLayerNormEpsilon);
  }

  // embedding [1, E] -> surface [1, S]
  at::Tensor one_row(const at::Tensor& embedding) const {
    const at::Tensor first = normalized(at::gelu(linear(embedding, "weight_1", "bias_1")), "gain_1", "shift_1");
    const at::Tensor second = normalized(at::gelu(linear(first, "weight_2", "bias_2")), "gain_2", "shift_2");
    const at::Tensor bounded = at::tanh(linear(second, "weight_3", "bias_3"));
    const at::Tensor scaled = at::addcmul(inputs_["offset"], bounded, inputs_["scale"]);
    return scaled + inputs_["cell_offset"].reshape({1, -1});
  }

  at::Tensor result() override {
    const at::Tensor& embedding = inputs_["embedding"];
    if (embedding.size(0) == 0) return embedding.new_empty({0, inputs_["weight_3"].size(0)}).requires_grad_(backward_);
    std::vector<at::Tensor> rows;
    for (const at::Tensor& row : embedding.split(1)) rows.push_back(one_row(row));
    return at::cat(rows, 0);
  }

  const bool round_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<EmbeddingMapperBaseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::embedding_mapper

// Baseline of energy_flow.text_encoder: a text at a time, unpadded, every operator a launch, scores in memory.
#include <ATen/ATen.h>

#include <cmath>

#include "baselines/common/layers.h"
#include "baselines/common/tape.h"
#include "baselines/energy_flow/common/encoder_dropout.h"
#include "src/common/forward_call.h"
#include "src/rounding.h"

namespace twinbench::energy_flow::text_encoder {
namespace {

class Baseline final : public TapeBaseline {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting),
        model_(setting.size("model")),
        heads_(setting.size("heads")),
        dropout_(on_host("sample_key"), setting) {
    make_leaves();
  }

 private:
  std::string of(const char* name, std::int64_t layer) const { return name + ("_" + std::to_string(layer)); }

  // [tokens, model] -> [heads, tokens, width]
  at::Tensor head_rows(const at::Tensor& rows) const {
    return baseline_operand(rows, round_).view({rows.size(0), heads_, model_ / heads_}).transpose(0, 1);
  }

  at::Tensor attended(const at::Tensor& qkv) const {
    const std::vector<at::Tensor> parts = qkv.chunk(3, 1);
    const at::Tensor query = head_rows(parts[0]), key = head_rows(parts[1]), value = head_rows(parts[2]);
    at::Tensor scores = query.bmm(key.transpose(1, 2));
    scores.mul_(1 / std::sqrt(static_cast<double>(model_ / heads_)));
    const at::Tensor mixed = scores.softmax(-1).bmm(value);
    return baseline_gradient(mixed, round_).transpose(0, 1).reshape({qkv.size(0), model_});
  }

  // [tokens, width] of sample `sample` as a site of dropout leaves them (C18, 0.6). ATen has generators of its own
  // only: the factors are drawn on the host.
  at::Tensor dropped(const at::Tensor& values, std::int64_t sample, std::int64_t site) const {
    return dropout_.on() ? values.mul(dropout_.factors(values, sample, site)) : values;
  }

  at::Tensor encoded(const at::Tensor& ids, std::int64_t b) const {
    at::Tensor x = inputs_["embedding"].index_select(0, ids) + inputs_["position"].narrow(0, 0, ids.numel());
    for (std::int64_t i = 0; i < setting_.size("layers"); ++i) {
      const at::Tensor mixed = attended(linear(x, of("qkv_weight", i), of("qkv_bias", i)));
      x = layer_norm(x + dropped(linear(mixed, of("out_weight", i), of("out_bias", i)), b, 2 * i), of("gain_1", i),
                     of("shift_1", i));
      const at::Tensor hidden = at::gelu(linear(x, of("ff_in_weight", i), of("ff_in_bias", i)));
      x = layer_norm(x + dropped(linear(hidden, of("ff_out_weight", i), of("ff_out_bias", i)), b, 2 * i + 1),
                     of("gain_2", i), of("shift_2", i));
    }
    const at::Tensor mean = x.mean(0, true);
    const at::Tensor projected =
        dropped(at::gelu(linear(mean, "projection_weight", "projection_bias")), b, 2 * setting_.size("layers"));
    const at::Tensor normal = layer_norm(projected, "gain_last", "shift_last");
    return linear(normal, "surface_weight", "surface_bias").tanh();
  }

  void compute() override {
    const std::int64_t batch = setting_.size("batch");
    const at::Tensor lengths = inputs_["length"].cpu().contiguous();
    std::vector<at::Tensor> surfaces;
    for (std::int64_t b = 0; b < batch; ++b) {
      announce_forward_call("energy_flow.text_encoder");
      const at::Tensor ids = inputs_["token"].select(0, b).narrow(0, 0, lengths.const_data_ptr<std::int32_t>()[b]);
      const at::Tensor surface = encoded(ids, b);
      if (backward_)
        root(surface, inputs_["grad_surface"].narrow(0, b, 1));
      else
        surfaces.push_back(surface);
    }
    if (backward_) return;
    results_.set("surface", batch > 0 ? at::cat(surfaces)
                                      : at::empty({0, setting_.size("cells")}, inputs_["embedding"].options()));
  }

  const std::int64_t model_, heads_;
  const EncoderDropout dropout_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_encoder

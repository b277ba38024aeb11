// The text encoder a text at a time: every operator a launch.
#include "baselines/energy_flow/common/encoder_texts.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "baselines/common/layers.h"
#include "src/common/forward_call.h"

namespace twinbench::energy_flow {

EncoderTexts::EncoderTexts(const NamedTensors& inputs, const Setting& setting)
    : TapeBaseline(inputs, setting),
      model_(setting.size("model")),
      heads_(setting.size("heads")),
      lengths_(on_host("length")),
      dropout_(on_host("sample_key"), setting) {
  make_leaves();
}

// [tokens, model] -> [heads, tokens, width]
at::Tensor EncoderTexts::head_rows(const at::Tensor& rows) const {
  return baseline_operand(rows, round_).view({rows.size(0), heads_, model_ / heads_}).transpose(0, 1);
}

at::Tensor EncoderTexts::attended(const at::Tensor& qkv) const {
  const std::vector<at::Tensor> parts = qkv.chunk(3, 1);
  const at::Tensor query = head_rows(parts[0]), key = head_rows(parts[1]), value = head_rows(parts[2]);
  at::Tensor scores = query.bmm(key.transpose(1, 2));
  scores.mul_(1 / std::sqrt(static_cast<double>(model_ / heads_)));
  const at::Tensor mixed = scores.softmax(-1).bmm(value);
  return baseline_gradient(mixed, round_).transpose(0, 1).reshape({qkv.size(0), model_});
}

// [tokens, width] as a site of dropout leaves them (C18, 0.6). ATen has generators of its own only: the factors are
// drawn on the host.
at::Tensor EncoderTexts::dropped(const at::Tensor& values, std::int64_t text, std::int64_t site) const {
  return dropout_.on() ? values.mul(dropout_.factors(values, text, site)) : values;
}

at::Tensor EncoderTexts::encoded(std::int64_t text) const {
  const std::int64_t length = lengths_.const_data_ptr<std::int32_t>()[text], layers = setting_.size("layers");
  const at::Tensor ids = inputs_["token"].select(0, text).narrow(0, 0, length);
  at::Tensor x = inputs_["embedding"].index_select(0, ids) + inputs_["position"].narrow(0, 0, length);
  for (std::int64_t i = 0; i < layers; ++i) {
    const at::Tensor mixed = attended(linear(x, of("qkv_weight", i), of("qkv_bias", i)));
    x = layer_norm(x + dropped(linear(mixed, of("out_weight", i), of("out_bias", i)), text, 2 * i), of("gain_1", i),
                   of("shift_1", i));
    const at::Tensor hidden = at::gelu(linear(x, of("ff_in_weight", i), of("ff_in_bias", i)));
    x = layer_norm(x + dropped(linear(hidden, of("ff_out_weight", i), of("ff_out_bias", i)), text, 2 * i + 1),
                   of("gain_2", i), of("shift_2", i));
  }
  const at::Tensor mean = x.mean(0, true);
  const at::Tensor projected =
      dropped(at::gelu(linear(mean, "projection_weight", "projection_bias")), text, 2 * layers);
  const at::Tensor normal = layer_norm(projected, "gain_last", "shift_last");
  return linear(normal, "surface_weight", "surface_bias").tanh();
}

TextsOnTape::TextsOnTape(const NamedTensors& inputs, const Setting& setting) : EncoderTexts(inputs, setting) {}

at::Tensor TextsOnTape::forward(std::int64_t first, std::int64_t texts) {
  surfaces_.clear();
  const at::AutoGradMode tape(true);
  for (std::int64_t text = first; text < first + texts; ++text) {
    announce_forward_call("energy_flow.text_encoder");
    surfaces_.push_back(encoded(text));
  }
  const at::AutoGradMode none(false);
  return at::cat(surfaces_);
}

const NamedTensors& TextsOnTape::backward(const at::Tensor& grad_surface) {
  for (std::size_t b = 0; b < surfaces_.size(); ++b)
    root(surfaces_[b], grad_surface.narrow(0, static_cast<std::int64_t>(b), 1));
  surfaces_.clear();
  replay();
  return results_;
}

}  // namespace twinbench::energy_flow

// The decoder's layers, an operator each.
#include "baselines/energy_flow/common/decoder.h"

#include <ATen/ATen.h>

#include <cmath>

#include "src/rounding.h"

namespace twinbench::energy_flow::text_decoder {
namespace {

constexpr double kEpsilon = 1e-6;

// Sines in the even columns, cosines in the odd ones.
at::Tensor encodings(std::int64_t positions, std::int64_t width) {
  const at::Tensor column = at::arange(width, at::kDouble), pair = column.div(2).floor();
  const at::Tensor frequency = at::pow(10000.0, pair.mul(-2.0 / static_cast<double>(width)));
  const at::Tensor angle = at::arange(positions, at::kDouble).unsqueeze(1).mul(frequency);
  return at::where(column.remainder(2).eq(0), angle.sin(), angle.cos());
}

}  // namespace

DecoderLayers::DecoderLayers(const NamedTensors& inputs, const Setting& setting, Way way)
    : TapeBaseline(inputs, setting, way),
      layers_(setting.size("layers")),
      heads_(setting.size("heads")),
      tokens_(setting.size("tokens")),
      scale_(1 / std::sqrt(static_cast<double>(setting.size("head_width")))),
      fused_norm_(way == Way::kLibrary),
      words_(inputs, setting.size("longest_word")),
      embedding_(inputs["embedding"]),
      positions_(encodings(tokens_, setting.size("model")).to(inputs["surface"].options())) {}

at::Tensor DecoderLayers::adapted(const at::Tensor& surface) const {
  const at::Tensor hidden = at::gelu(linear(surface, "adapter_weight_1", "adapter_bias_1"));
  const at::Tensor middle = layer_norm(hidden, "adapter_gain_1", "adapter_shift_1");
  return layer_norm(linear(middle, "adapter_weight_2", "adapter_bias_2"), "adapter_gain_2", "adapter_shift_2");
}

at::Tensor DecoderLayers::embedded(const at::Tensor& ids, std::int64_t first, bool moves) const {
  return at::index_select(embedding_, 0, ids) + positions_.narrow(0, first, moves ? ids.size(0) : 1);
}

at::Tensor DecoderLayers::rms(const at::Tensor& x, const std::string& gain) const {
  if (fused_norm_) return at::rms_norm(x, {x.size(-1)}, inputs_[gain], kEpsilon);
  return x * at::rsqrt(at::mean(at::square(x), -1, true) + kEpsilon) * inputs_[gain];
}

at::Tensor DecoderLayers::crossed(const at::Tensor& memory, std::int64_t layer) const {
  return of_layer(of_layer(memory, "cross_value", layer), "cross_out", layer);
}

at::Tensor DecoderLayers::fed_forward(const at::Tensor& x, std::int64_t layer) const {
  return of_layer(at::relu(of_layer(rms(x, of("ff_gain", layer)), "ff_in", layer)), "ff_out", layer);
}

at::Tensor DecoderLayers::logits_of(const at::Tensor& x) const {
  return product(rms(x, "final_gain"), "embedding") * (1 / std::sqrt(static_cast<double>(x.size(1))));
}

at::Tensor DecoderLayers::operand(const at::Tensor& x) const { return round_ ? rounded(x, Dtype::kBf16) : x; }

void DecoderLayers::give(const std::vector<std::vector<std::int64_t>>& ids, const at::Tensor& logits,
                         const at::Tensor& gaps) {
  const auto batch = static_cast<std::int64_t>(ids.size());
  const std::int64_t room = setting_.size("text_bytes");
  const at::Tensor tokens = at::zeros({batch, tokens_}, at::kLong), lengths = at::zeros({batch}, at::kInt);
  const at::Tensor texts = at::zeros({batch, room}, at::kByte), sizes = at::zeros({batch}, at::kInt);
  for (std::int64_t b = 0; b < batch; ++b) {
    std::string text;
    const auto& generated = ids[static_cast<std::size_t>(b)];
    for (std::size_t i = 0; i < generated.size(); ++i) {
      tokens.mutable_data_ptr<std::int64_t>()[b * tokens_ + static_cast<std::int64_t>(i)] = generated[i];
      if (generated[i] < kFirstWord) continue;
      if (!text.empty()) text += ' ';
      text += words_.word(generated[i]);
    }
    lengths.mutable_data_ptr<std::int32_t>()[b] = static_cast<std::int32_t>(generated.size());
    sizes.mutable_data_ptr<std::int32_t>()[b] = static_cast<std::int32_t>(text.size());
    if (!text.empty()) std::memcpy(texts.mutable_data_ptr<std::uint8_t>() + b * room, text.data(), text.size());
  }
  const at::Device device = logits.device();
  results_ = {{"token", tokens.to(device)}, {"length", lengths.to(device)},   {"logit", logits}, {"gap", gaps},
              {"text", texts.to(device)},   {"text_length", sizes.to(device)}};
}

}  // namespace twinbench::energy_flow::text_decoder

// Baseline of energy_flow.text_decoder: one sample after another; every new token takes its whole prefix through all
// layers again, cross-attention with it, and the likeliest id is read to the host.
#include <ATen/ATen.h>

#include <limits>
#include <string>
#include <vector>

#include "baselines/energy_flow/common/decoder.h"
#include "src/common/forward_call.h"
#include "src/rounding.h"

namespace twinbench::energy_flow::text_decoder {
namespace {

constexpr double kFarAway = std::numeric_limits<double>::infinity();  // no rounding takes this decision
constexpr double kMarginUnit = 5;  // a gap of 5e-2 is as close as the other decisions' 1e-2 (0.5)

class Baseline final : public DecoderLayers {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting) : DecoderLayers(inputs, setting, Way::kBaseline) {}

 private:
  struct Sample {
    std::vector<std::int64_t> ids;         // generated
    std::vector<at::Tensor> logits, gaps;  // [1] each
  };

  void compute() override {
    const at::Tensor& surface = inputs_["surface"];
    const at::Tensor logits = at::zeros({surface.size(0), tokens_}, surface.options());
    const at::Tensor gaps = at::ones({surface.size(0)}, surface.options());
    std::vector<std::vector<std::int64_t>> ids;
    for (std::int64_t b = 0; b < surface.size(0); ++b) {
      const Sample sample = decoded(surface.narrow(0, b, 1));
      ids.push_back(sample.ids);
      if (sample.ids.empty()) continue;
      logits.select(0, b).narrow(0, 0, static_cast<std::int64_t>(sample.ids.size())).copy_(at::cat(sample.logits));
      if (!round_) gaps.select(0, b).copy_(at::cat(sample.gaps).nan_to_num(1).amin().clamp_max(1));
    }
    give(ids, logits, gaps);
  }

  // surface [1, cells]
  Sample decoded(const at::Tensor& surface) {
    announce_forward_call("energy_flow.text_decoder");
    Sample sample;
    const bool finite = at::isfinite(surface).all().item<bool>();
    if (decided(finite, finite, kFarAway) == 0) return sample;
    const at::Tensor memory = adapted(surface);
    std::vector<std::int64_t> prefix = {kPadToken};
    while (static_cast<std::int64_t>(sample.ids.size()) < tokens_) {
      sample.ids.push_back(next(likely(prefix, memory), sample));
      prefix.push_back(sample.ids.back());
      if (sample.ids.back() == kEndToken) break;
    }
    return sample;
  }

  // Logits of what follows the prefix, [1, vocabulary].
  at::Tensor likely(const std::vector<std::int64_t>& prefix, const at::Tensor& memory) const {
    const auto length = static_cast<std::int64_t>(prefix.size());
    for (std::int64_t i = 0; i < length; ++i) announce_forward_call("energy_flow.decoder_position");
    at::Tensor x = embedded(at::tensor(prefix, inputs_["surface"].options().dtype(at::kLong)), 0);
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      x = x + attended(x, layer);
      x = x + crossed(memory, layer);
      x = x + fed_forward(x, layer);
    }
    return logits_of(x.narrow(0, length - 1, 1));
  }

  // Causal self-attention of all positions, x [positions, model].
  at::Tensor attended(const at::Tensor& x, std::int64_t layer) const {
    const std::int64_t length = x.size(0);
    const auto parts = of_layer(rms(x, of("self_gain", layer)), "self_qkv", layer)
                           .view({length, 3, heads_, x.size(1) / heads_})
                           .permute({1, 2, 0, 3})
                           .unbind();  // queries, keys, values: [heads, positions, head_width]
    const at::Tensor scores = at::bmm(operand(parts[0]), operand(parts[1]).transpose(1, 2)) * scale_;
    const at::Tensor later = at::ones({length, length}, x.options().dtype(at::kBool)).triu(1);
    const at::Tensor shares = at::softmax(scores.masked_fill(later, -std::numeric_limits<double>::infinity()), -1);
    const at::Tensor mixed = at::bmm(operand(shares), operand(parts[2]));
    return of_layer(mixed.transpose(0, 1).reshape({length, -1}), "self_out", layer);
  }

  // The likeliest id, read to the host.
  std::int64_t next(const at::Tensor& logits, Sample& sample) const {
    const auto [logit, id] = at::max(logits, 1);
    sample.logits.push_back(logit);
    const auto likeliest = id.item<std::int64_t>();
    if (!round_) {
      const at::Tensor two = std::get<0>(at::topk(logits, 2));
      sample.gaps.push_back(two.select(1, 0) - two.select(1, 1));
      return likeliest;
    }
    std::int64_t other = likeliest;
    double margin = kFarAway;
    if (setting_.dtype == Dtype::kFp64) {  // the oracle alone tells how close it was
      const auto [two, ids] = at::topk(logits, 2);
      other = ids[0][ids[0][0].item<std::int64_t>() == likeliest ? 1 : 0].item<std::int64_t>();
      margin = (two[0][0] - two[0][1]).item<double>() / kMarginUnit;
    }
    return decided(likeliest, other, margin);
  }
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_decoder

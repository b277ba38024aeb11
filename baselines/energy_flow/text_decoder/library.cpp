// energy_flow.text_decoder, library: all samples at once by LibTorch's own operators, with a cache of keys and values;
// the host looks every 16 tokens whether all have ended.
#include <ATen/ATen.h>

#include <vector>

#include "baselines/energy_flow/common/decoder.h"
#include "src/common/forward_call.h"

namespace twinbench::energy_flow::text_decoder {
namespace {

constexpr std::int64_t kTokensALook = 16;

class Library final : public DecoderLayers {
 public:
  Library(const NamedTensors& inputs, const Setting& setting) : DecoderLayers(inputs, setting, Way::kLibrary) {
    const std::int64_t batch = setting.size("batch"), width = setting.size("head_width");
    for (std::int64_t layer = 0; layer < layers_; ++layer)
      for (auto* cache : {&keys_, &values_})
        cache->push_back(at::zeros({batch, heads_, tokens_, width}, inputs["surface"].options()));
  }

 private:
  void compute() override {
    const at::Tensor& surface = inputs_["surface"];
    const std::int64_t batch = surface.size(0);
    const at::Tensor logits = at::zeros({batch, tokens_}, surface.options());
    const at::Tensor ids = at::zeros({batch, tokens_}, surface.options().dtype(at::kLong));
    const at::Tensor gaps = at::ones({batch}, surface.options());
    at::Tensor finished = at::isfinite(surface).all(1).logical_not();
    const at::Tensor lengths = at::zeros({batch}, surface.options().dtype(at::kLong));
    if (batch > 0) {
      announce_forward_call("energy_flow.text_decoder");
      decode(finished, ids, lengths, logits, gaps);
    }
    const at::Tensor host_ids = ids.cpu(), host_lengths = lengths.cpu();
    std::vector<std::vector<std::int64_t>> generated;
    for (std::int64_t b = 0; b < batch; ++b) {
      const std::int64_t* const first = host_ids.const_data_ptr<std::int64_t>() + b * tokens_;
      generated.emplace_back(first, first + host_lengths.const_data_ptr<std::int64_t>()[b]);
    }
    give(generated, logits, gaps);
  }

  void decode(at::Tensor finished, const at::Tensor& ids, const at::Tensor& lengths, const at::Tensor& logits,
              at::Tensor gaps) {
    const at::Tensor memory = adapted(inputs_["surface"]);
    std::vector<at::Tensor> crossing;
    for (std::int64_t layer = 0; layer < layers_; ++layer) crossing.push_back(crossed(memory, layer));
    at::Tensor last = at::zeros_like(lengths);
    for (std::int64_t t = 0; t < tokens_; ++t) {
      if (t % kTokensALook == 0 && finished.all().item<bool>()) break;
      at::Tensor x = embedded(last, t, false);
      for (std::int64_t layer = 0; layer < layers_; ++layer) {
        x = x + attended(x, layer, t) + crossing[static_cast<std::size_t>(layer)];
        x = x + fed_forward(x, layer);
      }
      const at::Tensor all = logits_of(x);
      const auto [logit, likeliest] = at::max(all, 1);
      last = likeliest.masked_fill(finished, kPadToken);
      ids.select(1, t).copy_(last);
      logits.select(1, t).copy_(logit.masked_fill(finished, 0));
      lengths.add_(finished.logical_not());
      if (!round_) {
        const at::Tensor two = std::get<0>(at::topk(all, 2));
        const at::Tensor gap = (two.select(1, 0) - two.select(1, 1)).nan_to_num(1);
        gaps.copy_(at::where(finished, gaps, at::minimum(gaps, gap)));
      }
      finished = finished.logical_or(last.eq(kEndToken));
    }
  }

  // Self-attention of the positions t, one a sample, x [batch, model].
  at::Tensor attended(const at::Tensor& x, std::int64_t layer, std::int64_t t) {
    const std::int64_t batch = x.size(0);
    const auto parts = of_layer(rms(x, of("self_gain", layer)), "self_qkv", layer)
                           .view({batch, 3, heads_, x.size(1) / heads_})
                           .unbind(1);
    const at::Tensor &keys = keys_[static_cast<std::size_t>(layer)], &values = values_[static_cast<std::size_t>(layer)];
    keys.select(2, t).copy_(operand(parts[1]));
    values.select(2, t).copy_(operand(parts[2]));
    const at::Tensor query = operand(parts[0]).unsqueeze(2), k = keys.narrow(2, 0, t + 1),
                     v = values.narrow(2, 0, t + 1);
    const at::Tensor mixed =
        round_ ? at::matmul(operand(at::softmax(at::matmul(query, k.transpose(2, 3)) * scale_, -1)), v)
               : at::scaled_dot_product_attention(query, k, v);
    return of_layer(mixed.reshape({batch, -1}), "self_out", layer);
  }

  std::vector<at::Tensor> keys_, values_;  // [batch, heads, tokens, head_width], of each layer
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_decoder

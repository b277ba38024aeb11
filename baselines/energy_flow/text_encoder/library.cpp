// energy_flow.text_encoder, library: the padded batch through LibTorch's own layers and its fused attention with a mask,
// as its TransformerEncoder does it; tokens made ahead.
#include <ATen/ATen.h>

#include <cmath>

#include "baselines/common/layers.h"
#include "baselines/common/tape.h"
#include "src/common/forward_call.h"
#include "src/energy_flow/common/text_rows.h"
#include "src/rounding.h"

namespace twinbench::energy_flow::text_encoder {
namespace {

class Library final : public TapeBaseline {
 public:
  Library(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting, Way::kLibrary), model_(setting.size("model")), heads_(setting.size("heads")) {
    const TextRows texts(inputs);
    const Vocabulary vocabulary = vocabulary_of(inputs, setting.size("longest_word"));
    const std::int64_t batch = setting.size("batch"), most = setting.size("max_length");
    const at::Device device = inputs["embedding"].device();
    at::Tensor all = at::zeros({batch, most}, at::kLong);
    at::Tensor lengths = at::empty({batch}, at::kInt), unknown = at::empty({batch}, at::kInt);
    for (std::int64_t b = 0; b < batch; ++b) {
      const Tokens tokens = tokens_of(texts[b], vocabulary, most);
      std::copy(tokens.ids.begin(), tokens.ids.end(), all.mutable_data_ptr<std::int64_t>() + b * most);
      longest_ = std::max(longest_, static_cast<std::int64_t>(tokens.ids.size()));
      lengths.mutable_data_ptr<std::int32_t>()[b] = static_cast<std::int32_t>(tokens.ids.size());
      unknown.mutable_data_ptr<std::int32_t>()[b] = static_cast<std::int32_t>(tokens.unknown);
    }
    tokens_ = {{"token", all.to(device)}, {"length", lengths.to(device)}, {"unknown", unknown.to(device)}};
    ids_ = tokens_["token"].narrow(1, 0, longest_).contiguous();
    taken_ = ids_.ne(0);
    share_ = (taken_.to(inputs["embedding"].scalar_type()) / tokens_["length"].unsqueeze(1)).unsqueeze(1);
    make_leaves();
  }

 private:
  std::string of(const char* name, std::int64_t layer) const { return name + ("_" + std::to_string(layer)); }

  at::Tensor attended(const at::Tensor& qkv, std::int64_t batch) const {
    const at::Tensor parts = baseline_operand(qkv, round_)
                                 .view({batch, longest_, 3, heads_, model_ / heads_})
                                 .permute({2, 0, 3, 1, 4});
    const at::Tensor taken = taken_.view({batch, 1, 1, longest_});
    const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], taken);
    return baseline_gradient(mixed, round_).transpose(1, 2).reshape({batch * longest_, model_});
  }

  void compute() override {
    const std::int64_t batch = setting_.size("batch");
    if (batch > 0) announce_forward_call("energy_flow.text_encoder");
    if (!backward_)
      for (const auto& [name, tensor] : tokens_) results_.set(name, tensor);
    if (batch == 0) {
      if (!backward_) results_.set("surface", at::empty({0, setting_.size("cells")}, inputs_["embedding"].options()));
      return;
    }
    at::Tensor x = (at::embedding(inputs_["embedding"], ids_) + inputs_["position"].narrow(0, 0, longest_))
                       .view({batch * longest_, model_});
    for (std::int64_t i = 0; i < setting_.size("layers"); ++i) {
      const at::Tensor mixed = attended(linear(x, of("qkv_weight", i), of("qkv_bias", i)), batch);
      x = layer_norm(x + linear(mixed, of("out_weight", i), of("out_bias", i)), of("gain_1", i), of("shift_1", i));
      const at::Tensor hidden = at::gelu(linear(x, of("ff_in_weight", i), of("ff_in_bias", i)));
      x = layer_norm(x + linear(hidden, of("ff_out_weight", i), of("ff_out_bias", i)), of("gain_2", i),
                     of("shift_2", i));
    }
    const at::Tensor mean = share_.bmm(x.view({batch, longest_, model_})).squeeze(1);
    const at::Tensor projected = at::gelu(linear(mean, "projection_weight", "projection_bias"));
    const at::Tensor normal = layer_norm(projected, "gain_last", "shift_last");
    result("surface", linear(normal, "surface_weight", "surface_bias").tanh());
  }

  const std::int64_t model_, heads_;
  std::int64_t longest_ = 0;
  NamedTensors tokens_;
  at::Tensor ids_, taken_, share_;  // [batch, longest]; share_: [batch, 1, longest], 1 / length or 0
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_encoder

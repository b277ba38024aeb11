// energy_flow.text_encoder, library: the padded batch through LibTorch's own layers and its fused attention, masked.
#include <ATen/ATen.h>

#include <cmath>

#include "baselines/common/layers.h"
#include "baselines/common/tape.h"
#include "baselines/energy_flow/common/encoder_dropout.h"
#include "src/common/forward_call.h"
#include "src/energy_flow/common/token_batch.h"
#include "src/rounding.h"

namespace twinbench::energy_flow::text_encoder {
namespace {

class Library final : public TapeBaseline {
 public:
  Library(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting, Way::kLibrary),
        model_(setting.size("model")),
        heads_(setting.size("heads")),
        longest_(setting.size("max_length")),
        dropout_(on_host("sample_key"), setting) {
    make_leaves();
  }

 private:
  std::string of(const char* name, std::int64_t layer) const { return name + ("_" + std::to_string(layer)); }

  at::Tensor attended(const at::Tensor& qkv, const at::Tensor& tokens) const {
    const std::int64_t batch = tokens.size(0);
    const at::Tensor parts =
        baseline_operand(qkv, round_).view({batch, longest_, 3, heads_, model_ / heads_}).permute({2, 0, 3, 1, 4});
    const at::Tensor taken = tokens.view({batch, 1, 1, longest_});
    const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], taken);
    return baseline_gradient(mixed, round_).transpose(1, 2).reshape({batch * longest_, model_});
  }

  // Rows of all samples, padding included, as a site of dropout leaves them.
  at::Tensor dropped(const at::Tensor& values, std::int64_t site) const {
    if (!dropout_.on()) return values;
    const std::int64_t batch = setting_.size("batch");
    const at::Tensor of_samples = values.view({batch, -1, model_});
    std::vector<at::Tensor> factors;
    for (std::int64_t b = 0; b < batch; ++b) factors.push_back(dropout_.factors(of_samples.select(0, b), b, site));
    return values.mul(at::stack(factors).view_as(values));
  }

  void compute() override {
    const std::int64_t batch = setting_.size("batch");
    if (batch > 0) announce_forward_call("energy_flow.text_encoder");
    if (batch == 0) {
      if (!backward_) results_.set("surface", at::empty({0, setting_.size("cells")}, inputs_["embedding"].options()));
      return;
    }
    const at::Tensor ids = inputs_["token"], taken = ids.ne(kPadToken);
    const at::Tensor share = taken.to(inputs_["embedding"].scalar_type()).div_(inputs_["length"].unsqueeze(1));
    at::Tensor x = (at::embedding(inputs_["embedding"], ids) + inputs_["position"].narrow(0, 0, longest_))
                       .view({batch * longest_, model_});
    for (std::int64_t i = 0; i < setting_.size("layers"); ++i) {
      const at::Tensor mixed = attended(linear(x, of("qkv_weight", i), of("qkv_bias", i)), taken);
      x = layer_norm(x + dropped(linear(mixed, of("out_weight", i), of("out_bias", i)), 2 * i), of("gain_1", i),
                     of("shift_1", i));
      const at::Tensor hidden = at::gelu(linear(x, of("ff_in_weight", i), of("ff_in_bias", i)));
      x = layer_norm(x + dropped(linear(hidden, of("ff_out_weight", i), of("ff_out_bias", i)), 2 * i + 1),
                     of("gain_2", i), of("shift_2", i));
    }
    const at::Tensor mean = share.unsqueeze(1).bmm(x.view({batch, longest_, model_})).squeeze(1);
    const at::Tensor projected =
        dropped(at::gelu(linear(mean, "projection_weight", "projection_bias")), 2 * setting_.size("layers"));
    const at::Tensor normal = layer_norm(projected, "gain_last", "shift_last");
    result("surface", linear(normal, "surface_weight", "surface_bias").tanh());
  }

  const std::int64_t model_, heads_, longest_;
  const EncoderDropout dropout_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_encoder

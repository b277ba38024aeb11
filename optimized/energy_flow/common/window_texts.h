// What both paths of the training step share of a window's texts (C21): a micro-batch's tokens where the encoder
// reads them, its gradients in the order of the arena, the decoder of the flows' surface where that lies.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <string>

#include "kernels/energy_flow/common/words.h"
#include "optimized/common/tensors.h"
#include "src/energy_flow/common/decoder_share.h"
#include "src/energy_flow/common/window_texts.h"

namespace twinbench::energy_flow::train_step {

// Kernels know no vocabulary.
static_assert(token_of_no_word(0) == kClassToken && token_of_no_word(1) == kEmptyToken &&
              token_of_no_word(2) == kEndToken && token_of_no_word(kTokensOfNoWord) == kPadToken);

// How many elements of the arena a window's texts train: the encoder's, the last ones; 0 where nothing is encoded.
inline std::int64_t encoder_elements(const Setting& s) {
  std::int64_t elements = 0;
  for (const InputSpec& one : trained_parameters(s))
    if (encodes(s) && one.name.starts_with("encoder_")) elements += c10::multiply_integers(extents(one.shape, s));
  return elements;
}
// Parts of a tensor of so many elements, under the names of their parameters' gradients.
inline NamedTensors encoder_parts(const at::Tensor& elements, const Setting& s) {
  NamedTensors parts;
  std::int64_t from = 0;
  for (const InputSpec& one : trained_parameters(s)) {
    if (!one.name.starts_with("encoder_")) continue;
    const std::vector<std::int64_t> shape = extents(one.shape, s);
    parts.set("grad_" + one.name, elements.narrow(0, from, c10::multiply_integers(shape)).view(shape));
    from += c10::multiply_integers(shape);
  }
  return parts;
}

// `Pass`: the encoder's pass on the path.
template <class Pass>
class TextParts {
 public:
  // parameters: the window's inputs, those that are trained in the arena. gradients: [encoder_elements], written by
  // every backward pass. surface: the flows', [micro_batch, cells].
  TextParts(const NamedTensors& parameters, const Setting& s, Device path, const at::Tensor& gradients,
            const at::Tensor& surface)
      : s_(s), shown_(most_decoded(s)) {
    if (!s.on("text_bridge") || Window(s).rows() <= 0) return;
    const std::int64_t batch = s.size("micro_batch");
    const at::TensorOptions options = surface.options();
    if (encodes(s)) {
      Setting own = encoder_setting(s, batch);
      own.device = path;
      encoded_ = at::zeros_like(surface), grad_encoded_ = at::zeros_like(surface);
      token_ = at::zeros({batch, s.size("max_length")}, options.dtype(at::kInt));
      length_ = at::zeros({batch}, options.dtype(at::kInt));
      key_ = at::zeros({batch}, options.dtype(at::kLong));
      encoder_.emplace(
          encoder_inputs(
              parameters, own,
              {{"token", token_}, {"length", length_}, {"sample_key", key_}, {"grad_surface", grad_encoded_}}),
          own, encoded_, encoder_gradients(encoder_parts(gradients, s), own));
    }
    if (shown_ > 0)
      decoder_ = kBridgeDecoder.make(Variant::kOptimized, path, parameters, s, 0, shown_,
                                     {{"surface", surface.narrow(0, 0, shown_)}});
  }

  bool encodes_texts() const { return encoder_.has_value(); }
  Pass& encoder() { return *encoder_; }
  void refresh() {
    if (encoder_) encoder_->refresh();
  }

  void begin(std::int64_t attempt) {
    due_ = decoder_ && is_due(s_, attempt);
    if (encoder_) encoder_->set_attempt(static_cast<std::uint32_t>(attempt));
  }
  // Whether the micro-step's first rows are decoded: of a window that is due the first.
  bool decodes_in(std::int64_t micro_step) const { return due_ && micro_step == 0; }
  std::int64_t shown() const { return shown_; }
  Runnable& decoder() { return *decoder_; }

  const at::Tensor& encoded() const { return encoded_; }            // [micro_batch, cells]
  const at::Tensor& grad_encoded() const { return grad_encoded_; }  // likewise; of rows that are not there 0
  const at::Tensor& token() const { return token_; }                // [micro_batch, max_length]
  const at::Tensor& length() const { return length_; }
  const at::Tensor& key() const { return key_; }

 private:
  const Setting s_;
  const std::int64_t shown_;
  at::Tensor encoded_, grad_encoded_, token_, length_, key_;
  std::optional<Pass> encoder_;
  std::unique_ptr<Runnable> decoder_;
  bool due_ = false;
};

}  // namespace twinbench::energy_flow::train_step

// The texts of a window as the training step's baseline takes them (C21, C23): encoded one by one on a tape, surfaces
// decoded one by one, losses an operator each.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "baselines/energy_flow/common/encoder_texts.h"
#include "baselines/energy_flow/common/window_tensors.h"
#include "baselines/energy_flow/common/word_sets.h"
#include "src/energy_flow/common/decoder_share.h"
#include "src/energy_flow/common/window_texts.h"

namespace twinbench::energy_flow::train_step {

class WindowTexts {
 public:
  // `inputs`: the window's, as they are given; all texts are read anew in every window.
  WindowTexts(const NamedTensors& inputs, const Setting& s) : inputs_(inputs), s_(s) {
    if (!s.on("text_bridge") || Window(s).rows() <= 0) return;
    row_ = at::zeros({1, s.size("cells")}, inputs["input"].options());
    decoder_ = kBridgeDecoder.make(Variant::kBaseline, s.device, inputs, s, 0, 1, {{"surface", row_}});
  }

  void begin(const TrainedTensors& tensors, std::int64_t attempt) {
    due_ = is_due(s_, attempt);
    if (decoder_) wanted_.emplace(inputs_, "wanted");
    decodes_ = tokens_ = 0;
    if (!encodes(s_) || Window(s_).rows() <= 0) return;
    const Setting own = encoder_setting(s_, Window(s_).rows(), attempt);
    NamedTensors parameters;
    for (const auto& [name, value] : tensors.value) parameters.set(name, value);
    const NamedTensors texts = {{"token", inputs_["token"]},
                                {"length", inputs_["length"]},
                                {"sample_key", inputs_["sample_key"]},
                                {"grad_surface", row_}};
    encoder_ = std::make_unique<TextsOnTape>(encoder_inputs(parameters, own, texts), own);
    gradients_ = encoder_gradients(tensors.by_gradient(), own);
  }
  // Nothing of the window is held.
  void end() { encoder_.reset(), gradients_ = {}, encoded_ = difference_ = at::Tensor(); }

  // ---- of a micro-step, in this order -------------------------------------------------------------------------------

  // Its rows from `first` on; `is_first` of the window, `target` of the encoder's surfaces.
  void encode(std::int64_t first, std::int64_t rows, bool is_first, const at::Tensor& target) {
    first_ = first, sum_ = 0, counted_ = 0;
    shown_ = is_first && due_ ? most_decoded(s_) : 0;
    if (encoder_) encoded_ = encoder_->forward(first, rows), difference_ = at::sub(encoded_, target);
  }
  std::int64_t shown() const { return shown_; }  // rows whose texts count
  const at::Tensor& encoded() const { return encoded_; }

  // Row b from its surface [1, cells]. Whether it counts or not, it is decoded.
  void decode(std::int64_t b, const at::Tensor& surface) {
    if (!decoder_) return;
    row_.copy_(surface);
    decoder_->run();
    const NamedTensors told = decoder_->outputs();
    const at::Tensor bytes = told["text"].cpu();
    const std::string_view text(reinterpret_cast<const char*>(bytes.const_data_ptr<std::uint8_t>()),
                                static_cast<std::size_t>(integer(told["text_length"])));
    ++decodes_, tokens_ += integer(told["length"]);
    if (b < shown_) sum_ += 1 - word_overlap(text, (*wanted_)[first_ + b]), ++counted_;
  }

  struct Losses {
    std::vector<at::Tensor> parts;  // encoder, decoder and the two together; none without the bridge
    at::Tensor text;
    double weight = 1;  // in the total
  };
  Losses losses(const at::Tensor& without_texts) const {
    if (!wanted_) return {{}, without_texts};
    const at::TensorOptions options = row_.options();
    const double decoded = counted_ == 0 ? 0 : sum_ / static_cast<double>(counted_);
    const at::Tensor encoder = encoder_ ? at::mean(at::mul(difference_, difference_)) : at::zeros({}, options),
                     decoder = at::full({}, decoded, options), text = at::add(encoder, decoder, kDecoderLossShare);
    return {{encoder, decoder, text}, text, s_.option("text_loss_weight")};
  }
  // Adds to the window's gradients. `share`: of the micro-step's loss.
  void backward(double share) {
    if (!encoder_) return;
    const double by = 2 * share * s_.option("text_loss_weight") / static_cast<double>(difference_.numel());
    for (const auto& [name, gradient] : encoder_->backward(at::mul(difference_, by)))
      at::Tensor(gradients_[name]).add_(gradient);
  }

  std::int64_t decodes() const { return decodes_; }
  std::int64_t tokens() const { return tokens_; }

 private:
  static std::int64_t integer(const at::Tensor& one) { return one.cpu().const_data_ptr<std::int32_t>()[0]; }

  const NamedTensors inputs_;
  const Setting s_;
  std::optional<TextList> wanted_;
  at::Tensor row_;  // what the decoder reads
  std::unique_ptr<Runnable> decoder_;
  std::unique_ptr<TextsOnTape> encoder_;  // of the window at hand; none where nothing is encoded
  NamedTensors gradients_;
  bool due_ = false;
  std::int64_t first_ = 0, shown_ = 0, counted_ = 0, decodes_ = 0, tokens_ = 0;
  double sum_ = 0;
  at::Tensor encoded_, difference_;
};

}  // namespace twinbench::energy_flow::train_step

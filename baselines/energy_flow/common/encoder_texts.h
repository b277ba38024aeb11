// The text encoder's layers in plain ATen (C18), a text at a time and unpadded: what its baseline and the training
// step's share.
#pragma once

#include <string>
#include <vector>

#include "baselines/common/tape.h"
#include "baselines/energy_flow/common/encoder_dropout.h"

namespace twinbench::energy_flow {

class EncoderTexts : public TapeBaseline {
 protected:
  EncoderTexts(const NamedTensors& inputs, const Setting& setting);

  at::Tensor encoded(std::int64_t text) const;  // [1, cells]; every operator a launch, scores in memory

 private:
  static std::string of(const char* name, std::int64_t layer) { return name + ("_" + std::to_string(layer)); }
  at::Tensor head_rows(const at::Tensor& rows) const;
  at::Tensor attended(const at::Tensor& qkv) const;
  at::Tensor dropped(const at::Tensor& values, std::int64_t text, std::int64_t site) const;

  const std::int64_t model_, heads_;
  const at::Tensor& lengths_;  // on the host
  const EncoderDropout dropout_;
};

// Texts of a window: a micro-step's forward, and back once its loss is known to be a number. The tape stays in between.
class TextsOnTape final : public EncoderTexts {
 public:
  // `inputs` of all texts of the window, by the encoder's names; of grad_surface nothing is read.
  TextsOnTape(const NamedTensors& inputs, const Setting& setting);

  at::Tensor forward(std::int64_t first, std::int64_t texts);    // [texts, cells]
  const NamedTensors& backward(const at::Tensor& grad_surface);  // grad_<parameter>, of the last forward

 private:
  void compute() override {}

  std::vector<at::Tensor> surfaces_;  // on the tape, [1, cells] each
};

}  // namespace twinbench::energy_flow

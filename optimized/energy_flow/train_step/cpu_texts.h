// The texts of a window on the CPU: staged, encoded and back in one pass a micro-step, decoded where they are due. No
// run allocates.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "optimized/energy_flow/common/cpu_text_encoder.h"
#include "optimized/energy_flow/common/surface_differences.h"
#include "optimized/energy_flow/common/window_texts.h"
#include "optimized/energy_flow/common/word_overlap.h"
#include "src/common/forward_call.h"

namespace twinbench::energy_flow::train_step {

class CpuTexts {
 public:
  CpuTexts(const NamedTensors& parameters, const Setting& s, const at::Tensor& gradients, const at::Tensor& surface)
      : inputs_(parameters),
        texts_(parameters, s, Device(), gradients, surface),
        wanted_(parameters, "wanted"),
        words_(s.size("text_bytes"), wanted_.bytes()) {
    for (const char* name : {"token", "length", "sample_key"}) inputs_.set(name, inputs_[name].contiguous());
    if (texts_.shown() > 0) predicted_ = texts_.decoder().outputs();
  }

  bool encodes_texts() const { return texts_.encodes_texts(); }
  void refresh() { texts_.refresh(); }
  void begin(std::int64_t attempt) { texts_.begin(attempt); }
  const at::Tensor& encoded() const { return texts_.encoded(); }

  // Texts of rows from number `row` on to surfaces.
  void encode(std::int64_t row, std::int64_t rows) {
    stage(row, rows);
    announce_forward_call("energy_flow.text_encoder");
    texts_.encoder().forward();
  }
  // Sum of squares of what lies between them and the targets; its gradient, differences times `factor`, is kept.
  double squares(const float* target, float factor, std::int64_t rows) {
    const at::Tensor &surface = texts_.encoded(), &gradient = texts_.grad_encoded();
    const std::int64_t count = rows * surface.size(1);
    std::fill(data<float>(gradient) + count, data<float>(gradient) + gradient.numel(), 0.0f);
    return squared_differences<float>(data<float>(surface), target, data<float>(gradient), factor, count);
  }
  void backward() { texts_.encoder().backward(); }

  // The decoder's loss (C23) in a micro-step whose rows begin at `row`; 0 where nothing is decoded.
  double decoded(std::int64_t micro_step, std::int64_t row) {
    if (!texts_.decodes_in(micro_step)) return 0;
    texts_.decoder().run();
    const std::int64_t room = predicted_["text"].size(1);
    const auto* const bytes = reinterpret_cast<const char*>(predicted_["text"].const_data_ptr<std::uint8_t>());
    const auto* const length = predicted_["text_length"].const_data_ptr<std::int32_t>();
    double sum = 0;
    for (std::int64_t b = 0; b < texts_.shown(); ++b)
      sum += 1 - words_.overlap({bytes + b * room, static_cast<std::size_t>(length[b])}, wanted_[row + b]);
    return sum / static_cast<double>(texts_.shown());
  }

 private:
  // Rows that are not there hold the empty text, whose surface has no gradient.
  void stage(std::int64_t row, std::int64_t rows) {
    const std::int64_t most = texts_.token().size(1), batch = texts_.token().size(0);
    auto* const token = data<std::int32_t>(texts_.token());
    auto* const length = data<std::int32_t>(texts_.length());
    std::copy_n(inputs_["token"].const_data_ptr<std::int32_t>() + row * most, rows * most, token);
    std::copy_n(inputs_["length"].const_data_ptr<std::int32_t>() + row, rows, length);
    std::copy_n(inputs_["sample_key"].const_data_ptr<std::int64_t>() + row, rows, data<std::int64_t>(texts_.key()));
    for (std::int64_t b = rows; b < batch; ++b) {
      for (std::int64_t i = 0; i < most; ++i) token[b * most + i] = token_of_no_word(i);
      length[b] = kTokensOfNoWord;
    }
  }

  NamedTensors inputs_;
  TextParts<CpuTextEncoder<float>> texts_;
  const TextList wanted_;
  WordSets words_;
  NamedTensors predicted_;
};

}  // namespace twinbench::energy_flow::train_step

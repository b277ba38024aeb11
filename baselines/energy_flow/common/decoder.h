// The decoder's layers in plain ATen (C20), as its baseline and its library variant call them: adapter, embedding,
// norms, cross-attention, feed-forward, logits; and ids to results. How prefixes are attended to is a derived class's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "baselines/common/tape.h"
#include "src/energy_flow/common/word_table.h"

namespace twinbench::energy_flow::text_decoder {

class DecoderLayers : public TapeBaseline {
 protected:
  DecoderLayers(const NamedTensors& inputs, const Setting& setting, Way way);

  at::Tensor adapted(const at::Tensor& surface) const;  // [rows, cells] -> the memory, [rows, model]
  // Of ids [rows], each with the encoding of its position: `first` and those after it, or all of `first` where !moves.
  at::Tensor embedded(const at::Tensor& ids, std::int64_t first, bool moves = true) const;
  at::Tensor rms(const at::Tensor& x, const std::string& gain) const;      // x / root mean square, times the gain
  at::Tensor crossed(const at::Tensor& memory, std::int64_t layer) const;  // over one key: what its value gives
  at::Tensor fed_forward(const at::Tensor& x, std::int64_t layer) const;
  at::Tensor logits_of(const at::Tensor& x) const;  // [rows, model] -> [rows, vocabulary]

  static std::string of(const std::string& name, std::int64_t layer) { return name + "_" + std::to_string(layer); }
  at::Tensor of_layer(const at::Tensor& x, const std::string& weight, std::int64_t layer) const {
    return product(x, of(weight, layer));
  }
  at::Tensor operand(const at::Tensor& x) const;  // of attention's products

  // Hands over all outputs: ids [batch][generated], logits [batch, tokens], gaps [batch].
  void give(const std::vector<std::vector<std::int64_t>>& ids, const at::Tensor& logits, const at::Tensor& gaps);

  const std::int64_t layers_, heads_, tokens_;
  const double scale_;  // of scores

 private:
  const bool fused_norm_;
  const WordTable words_;
  const at::Tensor embedding_, positions_;  // not rounded; [tokens, model]
};

}  // namespace twinbench::energy_flow::text_decoder

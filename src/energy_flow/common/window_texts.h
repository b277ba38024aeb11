// The texts of a training window (C21, C23, C24): what of the text bridge is among its inputs, how they are drawn and
// checked, which texts are decoded, and the bridge's parts as a window makes them.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>
#include <vector>

#include "src/energy_flow/common/bridge_parts.h"
#include "src/energy_flow/common/decoder_parameters.h"
#include "src/energy_flow/common/drawn_texts.h"
#include "src/energy_flow/common/encoder_parameters.h"
#include "src/energy_flow/common/text_list.h"
#include "src/energy_flow/common/token_batch.h"
#include "src/energy_flow/common/training_window.h"
#include "src/energy_flow/common/word_table.h"

namespace twinbench::energy_flow::train_step {

// Texts that are decoded in a window that is due: of its first micro-step's first rows (C21).
inline std::int64_t most_decoded(const Setting& s) {
  if (!s.on("text_bridge") || s.option("decoder_step_interval") == 0) return 0;
  return std::min(Window(s).rows_of(0), static_cast<std::int64_t>(s.option("decoder_max_batch")));
}
inline bool is_due(const Setting& s, std::int64_t attempt) {
  return most_decoded(s) > 0 && attempt % static_cast<std::int64_t>(s.option("decoder_step_interval")) == 0;
}

// The bridge's parts in a window's setting, for so many texts.
inline Setting encoder_setting(Setting s, std::int64_t texts, std::int64_t attempt = 0) {
  s.input_case.pass = Pass::kBackward;
  Setting own = kBridgeEncoder.setting(s, texts);
  own.input_case.options["attempt"] = static_cast<double>(attempt);
  return own;
}
inline Setting decoder_setting(const Setting& s, std::int64_t texts) { return kBridgeDecoder.setting(s, texts); }

// The encoder's inputs by its own names: parameters from a window's; tokens, lengths, keys and grad_surface from
// `texts`.
inline NamedTensors encoder_inputs(const NamedTensors& window, const Setting& encoder, const NamedTensors& texts) {
  NamedTensors inputs;
  for (const InputSpec& one : inputs_of(*encoder.signature, encoder))
    inputs.set(one.name, texts.contains(one.name) ? texts[one.name] : window[kBridgeEncoder.input(one.name)]);
  return inputs;
}
// From grad_<a window's parameter> to grad_<the encoder's>, those alone.
inline NamedTensors encoder_gradients(const NamedTensors& by_gradient, const Setting& encoder) {
  NamedTensors gradients;
  for (const OutputSpec& one : outputs_of(*encoder.signature, encoder))
    gradients.set(one.name, by_gradient["grad_" + kBridgeEncoder.input(one.name.substr(5))]);
  return gradients;
}

// ---- the signature's share ------------------------------------------------------------------------------------------

// All are 0 without an encoder: then there is no text, and no parameter of one.
inline std::vector<DerivedSize> text_sizes() {
  return {{"text_rows", Expression("rows * min(1, encoder_layers)")},
          {"text_steps", Expression("micro_steps * min(1, encoder_layers)")},
          {"encoder_cells", Expression("cells * min(1, encoder_layers)")},
          {"encoder_model", Expression("encoder_heads * encoder_head_width")},
          {"positions", Expression("4 * max_length")},
          {"decoder_model", Expression("decoder_heads * decoder_head_width")},
          {"middle", Expression("max(1, cells / 2) * min(1, encoder_layers)")},
          {"text_bytes", Expression("tokens * (longest_word + 1)")}};
}
// Elements of its parameters: tables; layers; projection, its norm, surface.
inline constexpr const char* kEncoderElements =
    "encoder_model * (vocabulary + positions) + encoder_layers * (4 * encoder_model * encoder_model + "
    "9 * encoder_model + encoder_ff * (2 * encoder_model + 1)) + encoder_model * (encoder_model + 3) + "
    "encoder_cells * (encoder_model + 1)";

// Texts of inputs as tokens, of targets as bytes; the encoder, which a window trains; the decoder, which none does.
inline void add_texts(Signature& s) {
  const auto whole = [&s](InputSpec input) { s.inputs.push_back(input.batch(std::nullopt).without_gradient()); };
  Signature encoder, decoder;
  encoder.inputs = encoder_tables();
  add_encoder_layers(encoder), add_decoder(decoder);
  for (const InputSpec& one : encoder.inputs) {
    InputSpec input = kBridgeEncoder.renamed(one);
    for (Expression& extent : input.shape)
      if (extent.text() == "cells") extent = Expression("encoder_cells");
    input.role = Role::kState;
    whole(input);
  }
  for (const InputSpec& one : decoder.inputs) whole(kBridgeDecoder.renamed(one));
  for (const InputSpec& one : word_inputs()) whole(one);
  whole(data("token", "text_rows, max_length", not_drawn()).of(Element::kInt32));
  whole(data("length", "text_rows", not_drawn()).of(Element::kInt32));
  whole(data("wanted_bytes", "any", not_drawn()).of(Element::kByte));
  whole(keys("wanted_offsets", "text_rows + 1"));
}

// Throws as check_tokens and TextList do.
inline void check_texts(const NamedTensors& inputs, const Setting& s) {
  if (!s.on("text_bridge")) return;
  check_tokens(inputs, s);
  (void)TextList(inputs, "wanted");
}

// What is wanted of a row: words of the vocabulary, two of three, in either case and between blanks of all kinds, and a
// word that it has not; of every fourth row nothing. As long with any seed.
inline std::string wanted_text(const WordTable& words, const Setting& s, std::int64_t row, std::uint64_t seed) {
  constexpr const char* kBlanks[] = {" ", "\t", "  ", "\n "};
  if (texts_of(s) == Texts::kEmpty || row % 4 == 3) return row % 2 ? " \t" : "";
  std::string text;
  for (std::int64_t id = kFirstWord; id < s.size("vocabulary"); ++id) {
    if ((id + row) % 3 == 0) continue;
    std::string word(words.word(id));
    if ((static_cast<std::uint64_t>(id) + seed) % 2)
      for (char& letter : word) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    text += word + kBlanks[(id + row) % 4];
  }
  return text + "caf\xc3\xa9";
}

inline void draw_window_texts(NamedTensors& inputs, const Setting& s, std::uint64_t seed) {
  if (!s.on("text_bridge")) return;
  draw_texts(inputs, s, s.size("rows"), seed);
  draw_words(inputs, s.size("vocabulary"), s.size("longest_word"), seed);
  make_texts_end(inputs["decoder_embedding"], s);
  hear_faint_surfaces(inputs["decoder_adapter_weight_1"]);
  // Of ids without a word no predicted text has any: all losses would be 1, whichever rows are decoded.
  inputs["decoder_embedding"].slice(0, kEndToken + 1, kFirstWord).zero_();
  const WordTable words(inputs, s.size("longest_word"));
  std::string bytes;
  auto* const offsets = inputs["wanted_offsets"].mutable_data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < s.size("rows"); ++row) {
    bytes += wanted_text(words, s, row, seed);
    offsets[row + 1] = static_cast<std::int64_t>(bytes.size());
  }
  const at::Tensor letters = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  if (!bytes.empty()) std::memcpy(letters.mutable_data_ptr<std::uint8_t>(), bytes.data(), bytes.size());
  inputs.set("wanted_bytes", letters);
}

}  // namespace twinbench::energy_flow::train_step

// energy_flow.text_decoder (C20): surfaces back to text, a token at a time, each the likeliest after those before.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <string>

#include "src/common/not_finite.h"
#include "src/energy_flow/common/decoder_parameters.h"
#include "src/energy_flow/common/word_table.h"
#include "src/operand_bytes.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::text_decoder {
namespace {

Signature signature() {
  const Tolerance step{Tolerance::Kind::kBound, {1e-4, 1e-4}, {3e-2, 2e-2}, "step"};
  Signature s{
      .derived = {{"model", Expression("heads * head_width")},
                  {"middle", Expression("max(1, cells / 2)"), true},
                  {"text_bytes", Expression("tokens * (longest_word + 1)")}},
      .options = {ending_option()},
      .inputs = {data("surface", "batch, cells", from_case(1)).without_gradient()},
      // logit: of each generated token; 0 after the last one. gap: between the two largest logits where they were
      // nearest, at most 1; 1 in modes that round, where decisions are set aside one by one.
      .outputs = {exact_output("token", "batch, tokens", Element::kInt64),
                  exact_output("length", "batch", Element::kInt32), output("logit", "batch, tokens", step).with_nan(),
                  output("gap", "batch", step), exact_output("text", "batch, text_bytes", Element::kByte),
                  exact_output("text_length", "batch", Element::kInt32)},
  };
  add_decoder(s);
  for (InputSpec& words : word_inputs()) s.inputs.push_back(words);
  return s;
}

// Keys against their queries: every score lies far below 0, where exp() gives nothing unless the largest is taken off.
// Over the one position of a text of one token the softmax is 1 even so, and rounding has no part in it.
void look_away(NamedTensors& inputs, const Setting& setting) {
  for (std::int64_t layer = 0; layer < setting.size("layers"); ++layer) {
    const auto parts = inputs["self_qkv_" + std::to_string(layer)].chunk(3);  // queries, keys, values
    parts[1].copy_(parts[0] * -400);
  }
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  if (setting.size("tokens") == 1) look_away(inputs, setting);
  draw_words(inputs, setting.size("vocabulary"), setting.size("longest_word"), seed);
  make_texts_end(inputs["embedding"], setting);
  for (std::int64_t b = 1; setting.on("non_finite") && b < setting.size("batch"); b += 2)
    inputs["surface"][b][b % setting.size("cells")].fill_(not_finite(b / 2));
}

// ---- counts ---------------------------------------------------------------------------------------------------------

// Of the generated tokens n of each sample.
template <class Term>
std::int64_t over_samples(const NamedTensors& outputs, const Term& term) {
  const at::Tensor lengths = outputs["length"].cpu();
  std::int64_t sum = 0;
  for (std::int64_t b = 0; b < lengths.numel(); ++b) sum += term(std::int64_t{lengths[b].item<std::int32_t>()});
  return sum;
}

// One a token, and one a sample: whether its surface is finite.
std::int64_t reads(Variant variant, const NamedTensors& outputs, const Setting&) {
  return variant == Variant::kOptimized ? 0 : over_samples(outputs, [](std::int64_t n) { return n + 1; });
}

// On the CPU finished samples are left out, so that they are at most batch * the longest. A card's own work is
// announced by nobody.
std::int64_t positions(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (variant == Variant::kBaseline) return over_samples(outputs, [](std::int64_t n) { return n * (n + 1) / 2; });
  return s.device.takes_cuda_path() ? 0 : over_samples(outputs, [](std::int64_t n) { return n; });
}

std::int64_t kernels_at_most(const Setting& s) { return s.size("batch") == 0 ? 0 : 7; }

// Of one surface whose text has so many tokens. The baseline forms them for every prefix, but for the logits.
struct Flops {
  double needed = 0, of_baseline = 0;
};
Flops flops_of_text(const Setting& s, double tokens) {
  const auto [cells, middle, model, layers, ff, vocabulary] =
      real_sizes<6>(s, {"cells", "middle", "model", "layers", "ff", "vocabulary"});
  const double adapter = cells * middle + middle * model, cross = 2 * layers * model * model;
  const double layer = layers * model * (4 * model + 2 * ff), logits = vocabulary * model;
  return {2 * (adapter + cross + tokens * (layer + logits)),
          2 * (adapter + tokens * (cross + logits + (tokens + 1) / 2 * layer)) +
              4 * layers * model * tokens * (tokens + 1) * (2 * tokens + 1) / 6};  // scores and mixtures of positions
}

// Of what nobody knows before: as if a sample that may end did so with its first token.
double least_tokens(const Setting& s) { return s.option("ending") == 2 ? static_cast<double>(s.size("tokens")) : 1; }

Cost cost(const Setting& s) {
  const auto [batch, cells, middle, model, layers, ff, vocabulary, tokens, text] =
      real_sizes<9>(s, {"batch", "cells", "middle", "model", "layers", "ff", "vocabulary", "tokens", "text_bytes"});
  const double decoded = s.on("non_finite") ? std::floor((batch + 1) / 2) : batch;
  // Weights are read once, however many tokens follow.
  const double weights = cells * middle + middle * model + layers * model * (6 * model + 2 * ff) + vocabulary * model;
  const double vectors = 3 * middle + 3 * model + model * (2 * layers + 1);
  return {operand_bytes(s) * weights + 4 * (vectors + batch * (cells + 3)) + batch * (tokens * 12 + text),
          decoded * flops_of_text(s, least_tokens(s)).needed};
}

double baseline_repeats(const Setting& s) {
  return flops_of_text(s, static_cast<double>(s.size("tokens"))).of_baseline /
         flops_of_text(s, least_tokens(s)).needed * (s.on("non_finite") ? 2 : 1);
}

// ---- what must hold -------------------------------------------------------------------------------------------------

at::Tensor too_close(const NamedTensors& outputs, const Setting& s) {
  return outputs["gap"].lt(s.dtype == Dtype::kBf16 ? 0 : 1e-4);
}

std::string broken_text(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& s) {
  const WordTable words(inputs, s.size("longest_word"));
  const at::Tensor tokens = outputs["token"].cpu(), lengths = outputs["length"].cpu();
  const at::Tensor texts = outputs["text"].cpu(), sizes = outputs["text_length"].cpu();
  for (std::int64_t b = 0; b < s.size("batch"); ++b) {
    const std::int64_t length = lengths[b].item<std::int32_t>();
    if (length < 0 || length > s.size("tokens")) return "a length is outside 0 .. tokens";
    for (std::int64_t i = 0; i < s.size("tokens"); ++i) {
      const auto id = tokens[b][i].item<std::int64_t>();
      if (id < 0 || id >= s.size("vocabulary")) return "an id is none of the vocabulary's";
      if (i >= length && id != kPadToken) return "a token after the end";
      if (i + 1 < length && id == kEndToken) return "a sample goes on after its end";
      if (i + 1 == length && length < s.size("tokens") && id != kEndToken) return "a sample stops before its end";
    }
    if (const std::string why = not_its_words(words, b, length, tokens, texts, sizes); !why.empty()) return why;
  }
  return "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.ambiguous = too_close;
  // For whoever has no outputs.
  const auto most_reads = [](const Setting& s) { return s.size("batch") * (s.size("tokens") + 1); };
  const auto most_positions = [](const Setting& s) {
    return s.size("batch") * s.size("tokens") * (s.size("tokens") + 1) / 2;
  };
  spec.proof = {{"scalar_reads", "", most_reads, nothing, reads},
                {"forward_calls.energy_flow.decoder_position", "", most_positions,
                 [](const Setting& s) { return s.size("batch") * s.size("tokens"); }, positions},
                {"forward_calls.energy_flow.text_decoder", "", [](const Setting& s) { return s.size("batch"); },
                 [](const Setting& s) { return std::int64_t{s.size("batch") > 0}; }}};
  spec.cost = cost;
  spec.baseline_repeats = baseline_repeats;
  spec.most_launches = kernels_at_most;
  spec.invariants = {{"texts are their tokens' words, up to the end", broken_text}};
  spec.refusals = {{"a word's bytes beyond the table",
                    [](NamedTensors& inputs, Setting& setting) {
                      inputs["word_offsets"].mutable_data_ptr<std::int64_t>()[setting.size("vocabulary")] += 1;
                    },
                    ErrorKind::kCorrupt, "word_offsets"},
                   special_id_with_a_word(),
                   {"a word that ends before all numbers",
                    [](NamedTensors& inputs, Setting&) {
                      inputs["word_offsets"].mutable_data_ptr<std::int64_t>()[kFirstWord + 1] =
                          std::numeric_limits<std::int64_t>::min();
                    },
                    ErrorKind::kCorrupt, "word_offsets"},
                   {"a word longer than the longest",
                    [](NamedTensors& inputs, Setting& setting) {
                      auto* const offsets = inputs["word_offsets"].mutable_data_ptr<std::int64_t>();
                      const std::int64_t all = setting.size("vocabulary"), longest = setting.size("longest_word");
                      inputs.set("word_bytes", at::full({longest + 1}, 'x', at::kByte));
                      for (std::int64_t id = 0; id <= all; ++id) offsets[id] = id == all ? longest + 1 : 0;
                    },
                    ErrorKind::kOutOfRange, "word_offsets"}};
  return spec;
}

}  // namespace twinbench::energy_flow::text_decoder

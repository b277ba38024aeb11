// energy_flow.text_encoder (C18): texts to surfaces, a small transformer and the mean of what it makes of the tokens.
#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "src/energy_flow/common/text_rows.h"
#include "src/operand_bytes.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::text_encoder {
namespace {

enum class Texts { kRagged, kEdges, kIdentical, kEmpty };
Texts texts_of(const Setting& s) { return static_cast<Texts>(static_cast<int>(s.option("texts"))); }

void add_norm(std::vector<InputSpec>& list, const std::string& number, std::uint32_t draw) {
  list.push_back(gain("gain_" + number, "model", normal(draw, 0.1)).shifted(1));
  list.push_back(bias("shift_" + number, "model", normal(draw + 1, 0.1)));
}
void add_linear(std::vector<InputSpec>& list, const std::string& name, const std::string& rows,
                const std::string& columns, std::uint32_t draw) {
  list.push_back(weight(name + "_weight", rows + ", " + columns, xavier(draw)));
  list.push_back(bias(name + "_bias", rows, uniform(draw + 1, -0.1, 0.1)));
}

Signature signature() {
  const Tolerance surface{Tolerance::Kind::kBound, {2e-5, 2e-6}, {3e-2, 1e-2}, "C18"};
  Signature s{
      .derived = {{"model", Expression("heads * head_width")},
                  {"positions", Expression("4 * max_length"), true},
                  {"text_bytes", Expression("(max_length + 4) * (longest_word + 1)"), true}},
      .options = {of_inputs(choice_option("texts", {"ragged", "edges", "identical", "empty"}, "ragged",
                                          "texts of many lengths; the edge cases in turn; one text; no word at all"))},
      .inputs = text_row_inputs(),
      .outputs = {exact_output("token", "batch, max_length", Element::kInt64),
                  exact_output("length", "batch", Element::kInt32), exact_output("unknown", "batch", Element::kInt32),
                  output("surface", "batch, cells", surface).with_gradient(20)},
  };
  for (InputSpec& words : word_inputs()) s.inputs.push_back(words);
  // Gains and shifts start at 1 and 0 in training; here they are spread, so that dropping one shows.
  s.inputs.push_back(bias("embedding", "vocabulary, model", from_case(1, 0.5)));
  s.inputs.push_back(bias("position", "positions, model", normal(2, 0.5)));
  std::vector<InputSpec> layer, last;
  add_linear(layer, "qkv", "3 * model", "model", 32);
  add_linear(layer, "out", "model", "model", 34);
  add_norm(layer, "1", 36);
  add_linear(layer, "ff_in", "ff", "model", 38);
  add_linear(layer, "ff_out", "model", "ff", 40);
  add_norm(layer, "2", 42);
  for (const InputSpec& one : layer) s.inputs.push_back(one.one_per("layers", 16));
  add_linear(last, "projection", "model", "model", 4);
  add_norm(last, "last", 6);
  add_linear(last, "surface", "cells", "model", 8);
  for (const InputSpec& one : last) s.inputs.push_back(one);
  return s;
}

// ---- texts ----------------------------------------------------------------------------------------------------------

// Words of a text of kind `kind`. Counts follow from the kind alone, so that a case has the same work with any seed;
// which sample is of which kind turns with the seed.
std::int64_t words_of(const Setting& s, std::int64_t kind) {
  const std::int64_t most = s.size("max_length") - 2;
  switch (texts_of(s)) {
    case Texts::kRagged: return 1 + (most / 2 + 37 * kind) % most;
    case Texts::kIdentical: return most;
    case Texts::kEmpty: return 0;
    case Texts::kEdges: break;
  }
  const std::int64_t of_kind[] = {0, 0, 1, most + 2, std::min<std::int64_t>(most, 3), 1};
  return of_kind[kind % 6];
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a + 1) * 0x9e3779b97f4a7c15u ^ (b + 7) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 31) * 0x94d049bb133111ebu;
  return x ^ x >> 29;
}

std::string text_of_kind(const NamedTensors& inputs, const Setting& s, std::int64_t kind, std::uint64_t seed) {
  if (texts_of(s) == Texts::kEdges && kind % 6 == 1) return " \t ";
  if (texts_of(s) == Texts::kEdges && kind % 6 == 2) return "?";
  if (texts_of(s) == Texts::kEdges && kind % 6 == 5) return std::string("a\0b", 3);
  const WordTable words(inputs, s.size("longest_word"));
  std::string text;
  for (std::int64_t i = 0; i < words_of(s, kind); ++i) {
    const std::uint64_t drawn = mixed(seed * 131 + (texts_of(s) == Texts::kIdentical ? 0 : static_cast<std::uint64_t>(kind)),
                                      static_cast<std::uint64_t>(i));
    if (i > 0) text += ' ';
    const bool unknown = drawn % 13 == 5 || (texts_of(s) == Texts::kEdges && kind % 6 == 4);
    std::string word(unknown ? "#" : words.word(kFirstWord + static_cast<std::int64_t>(drawn >> 8) %
                                                                 (s.size("vocabulary") - kFirstWord)));
    if (drawn % 5 == 0 && word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 'a' + 'A');
    text += word;
  }
  return text;
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  draw_words(inputs, setting.size("vocabulary"), setting.size("longest_word"), seed);
  const std::int64_t batch = setting.size("batch");
  std::vector<std::string> texts;
  for (std::int64_t sample = 0; sample < batch; ++sample)
    texts.push_back(text_of_kind(inputs, setting, (sample + static_cast<std::int64_t>(seed % 1024)) % batch, seed));
  set_text_rows(inputs, texts, setting.size("text_bytes"));
}

// ---- counts ---------------------------------------------------------------------------------------------------------

std::int64_t baseline_dispatches(const Setting& s) {
  const std::int64_t batch = s.size("batch"), layers = s.size("layers");
  return s.backward() ? batch * (60 * layers + 40) : batch * (24 * layers + 12);
}
std::int64_t optimized_dispatches(const Setting& s) {
  if (s.size("batch") == 0) return 0;
  const std::int64_t products = 4 * s.size("layers") + 2;
  return s.backward() ? 3 * products : products;
}

double tokens_of_all(const Setting& s, int power = 1) {
  double sum = 0;
  for (std::int64_t kind = 0; kind < s.size("batch"); ++kind) {
    std::int64_t words = std::max<std::int64_t>(1, std::min(words_of(s, kind), s.size("max_length") - 2));
    const auto tokens = static_cast<double>(words + 2);
    sum += power == 1 ? tokens : tokens * tokens;
  }
  return sum;
}

Cost cost(const Setting& s) {
  const auto [batch, cells, model, layers, ff, vocabulary, positions] =
      real_sizes<7>(s, {"batch", "cells", "model", "layers", "ff", "vocabulary", "positions"});
  const double tokens = tokens_of_all(s), pairs = tokens_of_all(s, 2);
  const double of_layer = 4 * model * model + 2 * model * ff, last = model * model + model * cells;
  const double flops = 2 * (layers * (tokens * of_layer + 2 * pairs * model) + batch * last);
  const double weights = layers * of_layer + last, vectors = layers * (9 * model + ff) + 3 * model + cells;
  const double rows = std::min(tokens, vocabulary) * model + std::min(tokens, positions) * model;
  const double bytes = operand_bytes(s) * weights + 4 * (vectors + batch * cells);
  if (!s.backward()) return {bytes + 4 * rows, flops};
  return {bytes + 4 * (rows + weights + vectors + (vocabulary + positions) * model), 3 * flops};
}

std::string broken_tokens(const NamedTensors&, const NamedTensors& outputs, const Setting& s) {
  if (s.backward()) return "";
  const at::Tensor tokens = outputs["token"].cpu(), lengths = outputs["length"].cpu();
  for (std::int64_t b = 0; b < s.size("batch"); ++b) {
    const std::int64_t length = lengths[b].item<std::int32_t>();
    if (length < kFewestTokensOfText || length > s.size("max_length")) return "a length is outside 3 .. max_length";
    for (std::int64_t i = 0; i < s.size("max_length"); ++i) {
      const auto id = tokens[b][i].item<std::int64_t>();
      if (id < 0 || id >= s.size("vocabulary")) return "an id is none of the vocabulary's";
      if ((i == 0) != (id == kClassToken)) return "the start is not the first token alone";
      if ((i + 1 == length) != (id == kEndToken)) return "the end is not the last token alone";
      if ((i >= length) != (id == kPadToken)) return "padding is not what follows the end";
    }
  }
  return "";
}
std::string beyond_one(const NamedTensors&, const NamedTensors& outputs, const Setting& s) {
  if (s.backward() || outputs["surface"].numel() == 0) return "";
  return outputs["surface"].abs().max().item<double>() <= 1 ? "" : "a cell lies beyond 1";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.proof = {{"dispatches", "", baseline_dispatches, optimized_dispatches},
                {"forward_calls.energy_flow.text_encoder", "", [](const Setting& s) { return s.size("batch"); },
                 [](const Setting& s) { return std::int64_t{s.size("batch") > 0}; }}};
  spec.cost = cost;
  spec.most_launches = [](const Setting& s) { return std::min<std::int64_t>(40, 9 * s.size("layers") + 6); };
  spec.invariants = {{"a text's tokens begin and end as they should, and padding follows", broken_tokens},
                     {"cells lie within 1", beyond_one}};
  spec.refusals = {{"a text longer than its row",
                    [](NamedTensors& inputs, Setting& setting) {
                      inputs["text_length"].mutable_data_ptr<std::int64_t>()[0] = setting.size("text_bytes") + 1;
                    },
                    ErrorKind::kOutOfRange, "text_length"},
                   {"a word's bytes beyond the table",
                    [](NamedTensors& inputs, Setting& setting) {
                      inputs["word_offsets"].mutable_data_ptr<std::int64_t>()[setting.size("vocabulary")] += 1;
                    },
                    ErrorKind::kCorrupt, "word_offsets"}};
  return spec;
}

}  // namespace twinbench::energy_flow::text_encoder

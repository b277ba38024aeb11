// energy_flow.text_encoder (C18): texts to surfaces, a small transformer and the mean of what it makes of the tokens.
#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "src/energy_flow/common/flow_lives.h"
#include "src/energy_flow/common/token_batch.h"
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
      .derived = {{"model", Expression("heads * head_width")}, {"positions", Expression("4 * max_length"), true}},
      .options = {of_inputs(choice_option(
          "texts", {"ragged", "edges", "identical", "empty"}, "ragged",
          "texts of many lengths; without a word, of one, too long, unknown, in turn; one text; no word at all"))},
      // Gains and shifts start at 1 and 0 in training; here they are spread, so that dropping one shows.
      .inputs = {bias("embedding", "vocabulary, model", from_case(1, 0.5)),
                 bias("position", "positions, model", normal(2, 0.5))},
      .outputs = {output("surface", "batch, cells", surface).with_gradient(20)},
  };
  for (const InputSpec& one : token_inputs()) s.inputs.push_back(one);
  s.inputs.push_back(keys("sample_key", "batch"));
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

void finish_inputs(NamedTensors& inputs, const Setting& s, std::uint64_t seed) {
  draw_sample_keys(inputs, seed);
  const std::int64_t batch = s.size("batch"), most = s.size("max_length");
  auto* const ids = inputs["token"].mutable_data_ptr<std::int32_t>();
  for (std::int64_t sample = 0; sample < batch; ++sample) {
    const std::int64_t kind = (sample + static_cast<std::int64_t>(seed % 1024)) % batch;
    const std::uint64_t text =
        texts_of(s) == Texts::kIdentical ? seed * 131 : seed * 131 + static_cast<std::uint64_t>(kind);
    std::int32_t* const row = ids + sample * most;
    std::fill(row, row + most, kPadToken);
    std::int64_t count = 0;
    row[count++] = kClassToken;
    for (std::int64_t i = 0; i < words_of(s, kind) && count < most - 1; ++i) {
      const std::uint64_t drawn = mixed(text, static_cast<std::uint64_t>(i));
      const bool unknown = drawn % 13 == 5 || (texts_of(s) == Texts::kEdges && kind % 6 == 4);
      const auto words = static_cast<std::uint64_t>(s.size("vocabulary") - kFirstWord);
      row[count++] = unknown ? kUnknownToken : kFirstWord + static_cast<std::int32_t>((drawn >> 8) % words);
    }
    if (count == 1) row[count++] = kEmptyToken;
    row[count++] = kEndToken;
    inputs["length"].mutable_data_ptr<std::int32_t>()[sample] = static_cast<std::int32_t>(count);
  }
}

// ---- counts ---------------------------------------------------------------------------------------------------------

// The concatenation at the end; with the tape, a sum of every parameter's gradients for each text but the first. A site
// of dropout scales its factors and multiplies, back too.
std::int64_t baseline_dispatches(const Setting& s) {
  const std::int64_t batch = s.size("batch"), layers = s.size("layers");
  if (batch == 0) return 0;
  const std::int64_t dropped = s.option("dropout") > 0 ? batch * (2 * layers + 1) * (s.backward() ? 3 : 2) : 0;
  if (!s.backward()) return batch * (13 * layers + 8) + 1 + dropped;
  return batch * (37 * layers + 21) + (batch - 1) * (12 * layers + 8) + dropped;
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

std::string beyond_one(const NamedTensors&, const NamedTensors& outputs, const Setting& s) {
  if (s.backward() || outputs["surface"].numel() == 0) return "";
  return outputs["surface"].abs().max().item<double>() <= 1 ? "" : "a cell lies beyond 1";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = check_tokens;
  spec.proof = {{"dispatches", "", baseline_dispatches, optimized_dispatches},
                {"forward_calls.energy_flow.text_encoder", "", [](const Setting& s) { return s.size("batch"); },
                 [](const Setting& s) { return std::int64_t{s.size("batch") > 0}; }}};
  spec.cost = cost;
  spec.most_launches = [](const Setting& s) { return (s.dtype == Dtype::kBf16 ? 11 : 10) * s.size("layers") + 7; };
  spec.invariants = {{"cells lie within 1", beyond_one}};
  spec.refusals = {{"a text longer than its row",
                    [](NamedTensors& inputs, Setting& setting) {
                      inputs["length"].mutable_data_ptr<std::int32_t>()[0] =
                          static_cast<std::int32_t>(setting.size("max_length")) + 1;
                    },
                    ErrorKind::kOutOfRange, "length"},
                   {"an id beyond the vocabulary",
                    [](NamedTensors& inputs, Setting& setting) {
                      inputs["token"].mutable_data_ptr<std::int32_t>()[0] =
                          static_cast<std::int32_t>(setting.size("vocabulary"));
                    },
                    ErrorKind::kOutOfRange, "token"}};
  return spec;
}

}  // namespace twinbench::energy_flow::text_encoder

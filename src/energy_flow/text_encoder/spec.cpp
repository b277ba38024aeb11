// energy_flow.text_encoder (C18): texts to surfaces, a small transformer and the mean of what it makes of the tokens.
#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "src/energy_flow/common/drawn_texts.h"
#include "src/energy_flow/common/encoder_parameters.h"
#include "src/energy_flow/common/flow_lives.h"
#include "src/energy_flow/common/token_batch.h"
#include "src/operand_bytes.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::text_encoder {
namespace {

Signature signature() {
  const Tolerance surface{Tolerance::Kind::kBound, {2e-5, 2e-6}, {3e-2, 1e-2}, "C18"};
  Signature s{
      .derived = {{"model", Expression("heads * head_width")}, {"positions", Expression("4 * max_length"), true}},
      .options = {texts_option()},
      .inputs = encoder_tables(),
      .outputs = {output("surface", "batch, cells", surface).with_gradient(20)},
  };
  for (const InputSpec& one : token_inputs()) s.inputs.push_back(one);
  s.inputs.push_back(keys("sample_key", "batch"));
  add_encoder_layers(s);
  return s;
}

void finish_inputs(NamedTensors& inputs, const Setting& s, std::uint64_t seed) {
  draw_sample_keys(inputs, s, seed);
  draw_texts(inputs, s, s.size("batch"), seed);
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
  spec.refusals = {text_beyond_its_row(),
                   {"an id beyond the vocabulary",
                    [](NamedTensors& inputs, Setting& setting) {
                      inputs["token"].mutable_data_ptr<std::int32_t>()[0] =
                          static_cast<std::int32_t>(setting.size("vocabulary"));
                    },
                    ErrorKind::kOutOfRange, "token"}};
  return spec;
}

}  // namespace twinbench::energy_flow::text_encoder

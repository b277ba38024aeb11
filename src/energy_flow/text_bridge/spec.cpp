// energy_flow.text_bridge (C21): a micro-step's forward pass with its texts, encoded to surfaces and decoded from them.
#include <ATen/ATen.h>

#include <string>

#include "src/energy_flow/common/bridge_parts.h"
#include "src/energy_flow/common/decoder_parameters.h"
#include "src/energy_flow/common/drawn_texts.h"
#include "src/energy_flow/common/encoder_parameters.h"
#include "src/energy_flow/common/flow_lives.h"
#include "src/energy_flow/common/flow_networks.h"
#include "src/energy_flow/common/flow_statistics.h"
#include "src/energy_flow/common/mapper_parameters.h"
#include "src/energy_flow/common/token_batch.h"
#include "src/energy_flow/common/word_table.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::text_bridge {
namespace {

OptionSpec spawn_option() {
  for (const OptionSpec& option : life_options())
    if (option.name == "spawn") return option;
  throw Error(ErrorKind::kInternal, "spawn", "no such option", "life_options() has it");
}

Signature signature() {
  const Tolerance run{Tolerance::Kind::kBound, {1e-3, 1e-4}, {6e-2, 3e-2}, "run"};
  const Tolerance encoded{Tolerance::Kind::kBound, {2e-5, 2e-6}, {3e-2, 1e-2}, "C18"};
  const Tolerance measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  // Which samples' texts are shown is a matter of their places in the batch: no item is by itself there.
  const auto shown = [](OutputSpec output) { return output.batch(std::nullopt); };
  Signature s{
      .derived = {{"cells", Expression("height * width")},
                  {"mapper_middle", Expression("2 * cells")},
                  {"mapper_inner", Expression("max(embedding / 2, 2 * cells)")},
                  {"statistics", Expression(std::to_string(std::int64_t{flow_forward::kStatistics}))},
                  {"work_columns", Expression(std::to_string(std::int64_t{kBridgeWork}))},
                  {"encoder_model", Expression("encoder_heads * encoder_head_width")},
                  {"positions", Expression("4 * max_length"), true},
                  {"decoder_model", Expression("decoder_heads * decoder_head_width")},
                  {"middle", Expression("max(1, cells / 2)"), true},
                  {"text_bytes", Expression("tokens * (longest_word + 1)")}},
      .options = {spawn_option(), texts_option(), ending_option()},
      .inputs = {data("embedding", "samples, embedding", from_case(1)).without_gradient(),
                 keys("sample_key", "samples")},
      // encoded: zeros without the bridge. decoded: what each shown text was decoded from; zeros, ids 0 and no text in
      // the rows of the others.
      .outputs = {output("surface", "samples, cells", run).with_nan(),
                  exact_output("stats", "samples, statistics", Element::kInt32),
                  exact_output("active", "samples, max_steps", Element::kInt32), output("margin", "samples", run),
                  output("encoded", "samples, cells", encoded),
                  shown(output("decoded", "samples, cells", run).with_nan()),
                  shown(exact_output("predicted_token", "samples, tokens", Element::kInt64)),
                  shown(exact_output("predicted_length", "samples", Element::kInt32)),
                  shown(output("gap", "samples", run)),
                  shown(exact_output("predicted_text", "samples, text_bytes", Element::kByte)),
                  shown(exact_output("predicted_text_length", "samples", Element::kInt32)),
                  shown(output("work", "work_columns", measured)).of(Element::kInt64)},
  };
  add_mapper(s);
  add_networks(s, /*trained=*/false);
  const auto add = [&s](const BridgePart& part, const std::vector<InputSpec>& inputs) {
    for (const InputSpec& input : inputs) s.inputs.push_back(part.renamed(input));
  };
  Signature encoder, decoder;
  add_encoder_layers(encoder), add_decoder(decoder);
  add(kBridgeEncoder, encoder_tables());
  add(kBridgeEncoder, token_inputs());
  add(kBridgeEncoder, encoder.inputs);
  add(kBridgeDecoder, decoder.inputs);
  for (const InputSpec& words : word_inputs()) s.inputs.push_back(words);
  return s;
}

// So that a surface is its sample's, and its text another than the next one's: networks as training starts them forget
// in a few steps with what energy a flow began.
void tell_samples_apart(NamedTensors& inputs, std::int64_t layers) {
  inputs["neuron_weight_1"].select(1, 3).mul_(8);  // the energy's
  for (std::int64_t l = 0; l < layers; ++l) inputs["weight_input_" + std::to_string(l)].mul_(3);
  inputs["energy_out_weight"].mul_(3);
}

void finish_inputs(NamedTensors& inputs, const Setting& s, std::uint64_t seed) {
  draw_sample_keys(inputs, s, seed);
  draw_texts(inputs, s, s.size("samples"), seed);
  draw_words(inputs, s.size("vocabulary"), s.size("longest_word"), seed);
  make_texts_end(inputs["decoder_embedding"], s);
  hear_faint_surfaces(inputs["decoder_adapter_weight_1"]);
  if (!s.on("toy")) {
    start_networks(inputs, s);
    return tell_samples_apart(inputs, s.size("layers"));
  }
  use_toy_networks(inputs, s.size("layers"));
  use_toy_mapper(inputs);
  plant(inputs["embedding"], 1, {0.5f, -1.0f, 0.25f, 2.0f});
}

// ---- counts ---------------------------------------------------------------------------------------------------------

// Flows that the baseline takes forward once more, a sample each.
std::int64_t repeats(const Setting& s) {
  return s.on("text_bridge") && s.on("repeated_forward") ? s.size("samples") : 0;
}
std::int64_t texts(const Setting& s) { return s.on("text_bridge") ? s.size("samples") : 0; }
std::int64_t any(std::int64_t count) { return count > 0 ? 1 : 0; }

// Another component's formula of this counter, of its own results among the bridge's.
std::int64_t told_by(const BridgePart& part, const char* counter, Variant variant, const NamedTensors& outputs,
                     const Setting& s) {
  const Setting own = part.setting(s, s.size("samples"));
  for (const ProofCounter& one : part.spec().proof)
    if (one.counter == counter) {
      if (one.of_result && !outputs.empty()) return one.of_result(variant, outputs, own);
      return (variant == Variant::kBaseline ? one.baseline : one.optimized)(own);
    }
  throw Error(ErrorKind::kInternal, part.component, counter, "it has no such proof counter");
}
std::int64_t tokens_of(const NamedTensors& outputs) { return outputs["work"][kDecodedTokens].item<std::int64_t>(); }

// The flows' own reads, once more for each sample alone; of a text one a token, and one whether its surface is finite.
std::int64_t reads(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (variant == Variant::kOptimized) return 0;
  const std::int64_t flows = told_by(kBridgeFlows, "scalar_reads", variant, outputs, s);
  return flows * (repeats(s) > 0 ? 2 : 1) + texts(s) + tokens_of(outputs);
}

// Likewise; each forward pass has two operators of its own. A decode begins with 6 and its adapter's and its gaps' 15,
// a token takes 29 a layer and 13; in bf16 mode 11 and 11, without gaps.
std::int64_t dispatches(Variant variant, const NamedTensors& outputs, const Setting& s) {
  const std::int64_t encoder = texts(s) > 0 ? told_by(kBridgeEncoder, "dispatches", variant, outputs, s) : 0;
  if (variant == Variant::kOptimized) return encoder;
  const std::int64_t flows = told_by(kBridgeFlows, "dispatches", variant, outputs, s);
  const std::int64_t again = repeats(s) > 0 ? flows + 2 * (repeats(s) - 1) : 0;
  const std::int64_t fewer = s.dtype == Dtype::kBf16 ? 1 : 0;
  return flows + again + encoder + texts(s) * (21 - 4 * fewer) +
         tokens_of(outputs) * (29 * s.size("decoder_layers") + 13 - 2 * fewer);
}
// For whoever has no outputs.
std::int64_t most_dispatches(const Setting& s) {
  return told_by(kBridgeFlows, "dispatches", Variant::kBaseline, {}, s) * (repeats(s) > 0 ? 2 : 1);
}
std::int64_t products(const Setting& s) {
  return texts(s) > 0 ? told_by(kBridgeEncoder, "dispatches", Variant::kOptimized, {}, s) : 0;
}

std::vector<ProofCounter> proof() {
  return {{"dispatches", "", most_dispatches, products, dispatches},
          {"scalar_reads", "", {}, {}, reads},
          {"forward_calls.energy_flow.flow_forward", "",
           [](const Setting& s) { return any(s.size("samples")) + repeats(s); },
           [](const Setting& s) { return any(s.size("samples")); }},
          {"forward_calls.energy_flow.flow_sample", "", [](const Setting& s) { return s.size("samples") + repeats(s); },
           [](const Setting& s) { return s.size("samples"); }},
          {"forward_calls.energy_flow.text_encoder", "", texts, [](const Setting& s) { return any(texts(s)); }},
          {"forward_calls.energy_flow.text_decoder", "", texts, [](const Setting& s) { return any(shown_texts(s)); }}};
}

// A part's own, for so many samples; nothing without one.
Cost cost_of(const BridgePart& part, const Setting& s, std::int64_t samples) {
  return samples > 0 ? part.spec().cost(part.setting(s, samples)) : Cost{};
}

Cost cost(const Setting& s) {
  Cost all;
  for (const Cost& one : {cost_of(kBridgeFlows, s, s.size("samples")), cost_of(kBridgeEncoder, s, texts(s)),
                          cost_of(kBridgeDecoder, s, shown_texts(s))})
    all.bytes += one.bytes, all.flops += one.flops;
  return all;
}

double baseline_repeats(const Setting& s) {
  const double samples = static_cast<double>(s.size("samples")), needed = cost(s).flops;
  if (needed == 0) return 1;
  const double flows = cost_of(kBridgeFlows, s, s.size("samples")).flops,
               encoder = cost_of(kBridgeEncoder, s, texts(s)).flops;
  const Setting one_text = kBridgeDecoder.setting(s, 1);
  const double decoder = static_cast<double>(texts(s)) * kBridgeDecoder.spec().cost(one_text).flops *
                         kBridgeDecoder.spec().baseline_repeats(one_text);
  return (flows * (1 + static_cast<double>(repeats(s)) / samples) + encoder + decoder) / needed;
}

std::int64_t most_launches(const Setting& s) {
  const auto of = [&s](const BridgePart& part, std::int64_t samples) {
    return samples > 0 ? part.spec().most_launches(part.setting(s, samples)) : 0;
  };
  return of(kBridgeFlows, s.size("samples")) + of(kBridgeEncoder, texts(s)) + of(kBridgeDecoder, shown_texts(s));
}

// ---- what must hold -------------------------------------------------------------------------------------------------

// Samples in which a flow's decision or the choice of a token is close (C16, C20); in modes that round, single
// decisions are set aside instead.
at::Tensor too_close(const NamedTensors& outputs, const Setting& s) {
  const at::Tensor flows = within_margin(outputs, s);
  return s.dtype == Dtype::kBf16 ? flows : flows.logical_or(outputs["gap"].lt(1e-4));
}

// A sample alone goes forward as it does in its batch, to the bit.
std::string other_surfaces(const NamedTensors&, const NamedTensors& outputs, const Setting& s) {
  const std::int64_t shown = shown_texts(s);
  const at::Tensor all = outputs["surface"].cpu(), taken = outputs["decoded"].cpu();
  const at::Tensor right = all.narrow(0, 0, shown), used = taken.narrow(0, 0, shown);
  if (!right.eq(used).logical_or(right.isnan().logical_and(used.isnan())).all().item<bool>())
    return "a text is decoded from another surface than its sample's";
  return taken.narrow(0, shown, s.size("samples") - shown).count_nonzero().item<std::int64_t>() == 0
             ? ""
             : "a surface is decoded that no text is shown of";
}

std::string other_texts(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& s) {
  const WordTable words(inputs, s.size("longest_word"));
  const at::Tensor tokens = outputs["predicted_token"].cpu(), lengths = outputs["predicted_length"].cpu();
  const at::Tensor texts = outputs["predicted_text"].cpu(), sizes = outputs["predicted_text_length"].cpu();
  for (std::int64_t b = 0; b < s.size("samples"); ++b) {
    const std::int64_t length = lengths[b].item<std::int32_t>();
    if (length < 0 || length > s.size("tokens")) return "a length is outside 0 .. tokens";
    if (b >= shown_texts(s) && length > 0) return "a text of a sample that is not to be shown";
    const at::Tensor ids = tokens[b].narrow(0, 0, length);
    if (ids.lt(0).logical_or(ids.ge(s.size("vocabulary"))).any().item<bool>())
      return "an id is none of the vocabulary's";
    if (const std::string why = not_its_words(words, b, length, tokens, texts, sizes); !why.empty()) return why;
  }
  return "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = check_tokens;
  spec.ambiguous = too_close;
  spec.proof = proof();
  spec.cost = cost;
  spec.baseline_repeats = baseline_repeats;
  spec.most_launches = most_launches;
  spec.invariants = {{"a text is decoded from its sample's row of the surface", other_surfaces},
                     {"texts are their tokens' words, of the samples that are due alone", other_texts}};
  spec.relations = {{"flows go forward once more or not, the texts are the same",
                     [](Setting s) { return with_option(s, "repeated_forward", s.on("repeated_forward") ? 0 : 1); }}};
  // Words are read where a text is due.
  Refusal special = special_id_with_a_word();
  special.spoil = [spoil = special.spoil](NamedTensors& inputs, Setting& s) {
    s = with_option(with_option(s, "text_bridge", 1), "decoder_step_interval", 1);
    spoil(inputs, s);
  };
  spec.refusals = {starts_on_a_plane(), text_beyond_its_row(), special};
  return spec;
}

}  // namespace twinbench::energy_flow::text_bridge

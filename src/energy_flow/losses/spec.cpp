// energy_flow.losses (C23): how far surfaces lie from their targets and texts from what was wanted, and the gradients.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "src/common/philox.h"
#include "src/energy_flow/common/decoder_share.h"
#include "src/energy_flow/common/sentence_pairs.h"
#include "src/energy_flow/common/text_list.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::losses {
namespace {

Signature signature() {
  const Tolerance loss{Tolerance::Kind::kBound, {2e-6, 1e-30}, {2e-6, 1e-30}, "C23"};
  const auto whole = [](InputSpec input) { return input.batch(std::nullopt); };
  const auto given = [&](InputSpec input) { return whole(input).without_gradient(); };
  const auto value = [&](const char* name) { return output(name, "1", loss).batch(std::nullopt).with_nan(); };
  return {
      .derived = {{"decoded", Expression("min(rows, decoder_max_batch)")}},
      .inputs = {whole(data("surface", "rows, cells", from_case(1))),
                 given(data("target", "rows, cells", from_case(2))),
                 whole(data("encoded", "rows, cells", from_case(3))),
                 given(data("encoded_target", "rows, cells", from_case(4))),
                 given(data("predicted_bytes", "any", not_drawn()).of(Element::kByte)),
                 given(keys("predicted_offsets", "decoded + 1")),
                 given(data("wanted_bytes", "any", not_drawn()).of(Element::kByte)),
                 given(keys("wanted_offsets", "decoded + 1"))},
      .outputs = {value("energy_loss"), value("encoder_loss"), value("decoder_loss"), value("text_loss"),
                  value("total_loss").with_gradient(5),
                  exact_output("finite", "1", Element::kInt64).batch(std::nullopt)},
      // "elementwise", as a share: these gradients are as small as the surfaces are large.
      .gradient = {Tolerance::Kind::kBound, {2e-6, 1e-30}, {2e-6, 1e-30}, "elementwise"},
  };
}

// Words 0 to 63 of a list, in either case, one with bytes beyond ASCII.
std::string word(std::uint32_t number, bool upper) {
  if (number % 64 == 63) return "caf\xc3\xa9";
  std::string text;
  for (std::uint32_t rest = number % 64 + 1; rest > 0; rest /= 5)
    text.push_back(static_cast<char>((upper ? 'A' : 'a') + static_cast<int>(rest % 5 * 5)));
  return text;
}

// What was decoded and what was wanted, six kinds in turn: some words in common, the same in another order and case,
// none in common, decoded blank, wanted blank, a word many times over.
std::pair<std::string, std::string> pair_of(std::int64_t kind, std::int64_t words, std::uint64_t seed,
                                            std::uint32_t sample) {
  const char* const blanks[] = {" ", "\t", "  ", "\n", " \v\f\r "};
  std::string predicted, wanted;
  for (std::int64_t i = 0; i < words; ++i) {
    const PhiloxWords drawn =
        philox(seed, sample, static_cast<std::uint32_t>(i), 0, philox_tag(PhiloxStream::kSyntheticData, 9));
    const std::uint32_t own = drawn.w[0] % 32, other = kind == 0 ? drawn.w[1] % 40 : own;
    const std::string gap = blanks[drawn.w[2] % 5];
    predicted += word(kind == 5 ? 7 : own, drawn.w[3] % 2 == 0) + gap;
    const std::string next = word(kind == 2 ? 32 + other : other, drawn.w[3] % 3 == 0);
    wanted = kind == 1 ? next + gap + wanted : wanted + next + gap;
  }
  if (kind == 3) predicted = "  \t";
  if (kind == 4) wanted = "";
  return {predicted, wanted};
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  std::vector<std::string> predicted, wanted;
  const auto words = static_cast<std::int64_t>(setting.option("words"));
  for (std::int64_t i = 0; i < setting.size("decoded"); ++i) {
    const auto [said, right] = pair_of((i + static_cast<std::int64_t>(setting.option("first_kind"))) % 6, words + i % 3,
                                       seed, static_cast<std::uint32_t>(i));
    predicted.push_back(said), wanted.push_back(right);
  }
  const auto put = [&](const std::string& name, const std::vector<std::string>& texts) {
    NamedTensors as_tensors;
    set_texts(as_tensors, texts);
    inputs.set(name + "_bytes", as_tensors["text_bytes"]);
    inputs.set(name + "_offsets", as_tensors["text_offsets"]);
  };
  put("predicted", predicted), put("wanted", wanted);
  const float bad[] = {0, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()};
  if (const auto kind = static_cast<std::size_t>(setting.option("bad_value"));
      kind > 0 && inputs["surface"].numel() > 0)
    inputs["surface"].mutable_data_ptr<float>()[inputs["surface"].numel() / 2] = bad[kind];
}

std::int64_t pairs(const Setting& s) { return s.size("rows") == 0 ? 0 : s.option("text_loss_weight") > 0 ? 2 : 1; }

// Each loss and their sum, when it is there and for the log.
std::int64_t baseline_reads(const Setting& s) { return pairs(s) == 0 ? 0 : 2 * (pairs(s) + 1); }

// Forward, a pair: difference, square, mean; two additions join two pairs. The tape's own: four a pair, and the weight.
std::int64_t baseline_dispatches(const Setting& s) {
  const std::int64_t forward = 3 * pairs(s) + (pairs(s) == 2 ? 2 : 0);
  return s.backward() ? forward + 4 * pairs(s) + pairs(s) / 2 : forward;
}

Cost cost(const Setting& s) {
  const auto values = static_cast<double>(pairs(s) * s.size("rows") * s.size("cells"));
  return {4 * values * (s.backward() ? 3 : 2), values * (s.backward() ? 4 : 3)};
}

// Sum and bounds: what no version may break.
std::string put_together_wrong(const NamedTensors&, const NamedTensors& outputs, const Setting& s) {
  if (s.backward()) return "";
  const auto of = [&](const char* name) { return outputs[name].item<double>(); };
  const double energy = of("energy_loss"), encoder = of("encoder_loss"), decoder = of("decoder_loss"),
               text = of("text_loss"), total = of("total_loss");
  if ((of("finite") == 1) != std::isfinite(total)) return "the total loss is not what `finite` says of it";
  if (!(decoder >= 0 && decoder <= 1)) return c10::str("a decoder loss of ", decoder);
  if (!std::isfinite(total)) return "";
  if (energy < 0 || encoder < 0) return "a mean of squares is below 0";
  const auto differ = [](double a, double b) { return std::abs(a - b) > 1e-5 * std::max(std::abs(a), std::abs(b)); };
  if (differ(text, encoder + kDecoderLossShare * decoder)) return c10::str("a text loss of ", text);
  return differ(total, energy + s.option("text_loss_weight") * text) ? c10::str("a total loss of ", total) : "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.proof = {{"scalar_reads", "", baseline_reads, nothing}, {"dispatches", "", baseline_dispatches, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting&) { return 1; };
  spec.invariants = {{"losses add up", put_together_wrong}};
  const auto spoiled = [](const char* what, const char* input, std::int64_t by) {
    return Refusal{what,
                   [=](NamedTensors& inputs, Setting&) { inputs[input].mutable_data_ptr<std::int64_t>()[1] += by; },
                   ErrorKind::kCorrupt, input};
  };
  spec.refusals = {spoiled("a text beyond its bytes", "predicted_offsets", 1 << 20),
                   spoiled("a text that ends before it begins", "wanted_offsets", -(1 << 20))};
  return spec;
}

}  // namespace twinbench::energy_flow::losses

// energy_flow.fused_attention (C19): softmax(Q K^T / sqrt(width)) V of every head, without keys that are padding.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/energy_flow/common/key_padding.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::fused_attention {
namespace {

enum class Padding { kNone, kTail, kScattered, kBlocks, kIslands, kAllButOne };

Signature signature() {
  const Tolerance attended{Tolerance::Kind::kBound, {1e-5, 2e-6}, {1e-2, 5e-3}, "C19", {1e-5, 2e-6}, {2e-3, 1e-3}};
  return {
      .options = {of_inputs(choice_option("padding", {"none", "tail", "scattered", "blocks", "islands", "all_but_one"},
                                          "none",
                                          "which keys are padding: none, from some key on, here and there, most of "
                                          "them in one stretch, so that whole blocks of keys are skipped, all but a "
                                          "few between the first, the middle and the last of a block, or, in every "
                                          "other sample, all but one. What stands at a padded key, its value too, is "
                                          "finite: blocks that are skipped are not looked at"))},
      .inputs = {data("query", "batch, heads, queries, width", from_case(1)),
                 data("key", "batch, heads, keys, width", from_case(2)),
                 data("value", "batch, heads, keys, width", from_case(3)),
                 data("padding", "batch, keys", not_drawn()).of(Element::kBool).without_gradient()},
      .outputs = {output("out", "batch, heads, queries, width", attended).with_nan().with_gradient(4)},
      .gradient = {Tolerance::Kind::kGradient, {1e-4, 0}, {5e-2, 0}, "grad", {1e-4, 0}, {1e-2, 0}},
  };
}

// Whether key `key` of a sample of kind `kind` is padding. Lengths follow from the kind alone, so that a case has the
// same work with any seed; which sample is of which kind turns with the seed.
bool is_padding(const Setting& setting, std::int64_t kind, std::int64_t key) {
  const std::int64_t keys = setting.size("keys");
  switch (static_cast<Padding>(static_cast<int>(setting.option("padding")))) {
    case Padding::kNone: return false;
    case Padding::kTail: return key > (keys / 2 + 37 * kind) % keys;
    case Padding::kScattered: return key != kind % keys && (7 * key + 3 * kind) % 3 != 0;
    case Padding::kAllButOne: return kind % 2 == 0 && key != kind * keys / setting.size("batch");
    case Padding::kIslands: return key != keys / 2 && key % 4 != 1 + kind % 2;
    case Padding::kBlocks: return kind % 2 == 0 ? key < 3 * keys / 4 : key >= keys / 8 && key < 7 * keys / 8;
  }
  return false;
}

double pairs(const Setting& setting) {
  std::int64_t keys = 0;
  for (std::int64_t kind = 0; kind < setting.size("batch"); ++kind)
    for (std::int64_t key = 0; key < setting.size("keys"); ++key) keys += is_padding(setting, kind, key) ? 0 : 1;
  return static_cast<double>(keys * setting.size("heads") * setting.size("queries"));
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  const std::int64_t batch = setting.size("batch"), keys = setting.size("keys");
  const at::Tensor padding = at::empty({batch, keys}, at::kBool);
  for (std::int64_t sample = 0; sample < batch; ++sample)
    for (std::int64_t key = 0; key < keys; ++key)
      padding.mutable_data_ptr<bool>()[sample * keys + key] =
          is_padding(setting, (sample + static_cast<std::int64_t>(seed % 1024)) % batch, key);
  inputs.set("padding", padding);
  if (batch == 0 || setting.size("queries") == 0) return;
  if (setting.on("nan_query")) inputs["query"].mutable_data_ptr<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  if (setting.on("infinite_key"))  // of key 0 of the first head: scores of both infinities
    inputs["key"].mutable_data_ptr<float>()[0] = std::numeric_limits<float>::infinity();
}

double largest(const at::Tensor& tensor) {
  double most = 0;
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    if (const double value = std::abs(double{tensor.const_data_ptr<float>()[i]}); std::isfinite(value))
      most = std::max(most, value);
  return most;
}
// Of the longest finite row.
double longest(const at::Tensor& rows) {
  const std::int64_t width = rows.size(-1);
  double most = 0;
  for (std::int64_t row = 0; row * width < rows.numel(); ++row) {
    double squares = 0;
    for (std::int64_t c = 0; c < width; ++c) {
      const double value = rows.const_data_ptr<float>()[row * width + c];
      squares += value * value;
    }
    if (std::isfinite(squares)) most = std::max(most, squares);
  }
  return std::sqrt(most);
}

// The exponential amplifies a score's rounding by the score, and results are as large as values.
double attention_bound(const std::string&, const NamedTensors& inputs, const Setting& setting) {
  const double score =
      longest(inputs["query"]) * longest(inputs["key"]) / std::sqrt(static_cast<double>(setting.size("width")));
  return std::clamp(std::max(1.0, score / 32) * std::max(1.0, largest(inputs["value"]) / 4), 1.0, 1e6);
}

// Each of queries, keys, values and results once; of the backward pass their gradients too. Two products, or six:
// whoever keeps no scores makes one of them again.
Cost cost(const Setting& setting) {
  const auto [batch, heads, queries, keys, width] =
      real_sizes<5>(setting, {"batch", "heads", "queries", "keys", "width"});
  const double taken = heads * queries > 0 ? pairs(setting) / queries : 0;  // keys of all heads
  const double rows = 2 * batch * heads * queries + 2 * taken;
  const double bytes = 4 * width * rows + batch * keys;
  if (!setting.backward()) return {bytes, 4 * width * pairs(setting)};
  return {bytes + 4 * width * rows - 4 * width * batch * heads * queries, 12 * width * pairs(setting)};
}

std::int64_t baseline_dispatches(const Setting& setting) { return setting.backward() ? 30 : 9; }

// Forward two matrices of scores, a number of each query and the result, with the tape seven. In bf16 mode the rounded
// operands beside them.
std::int64_t baseline_peak(const Setting& setting) {
  const std::int64_t heads = setting.size("batch") * setting.size("heads"), width = setting.size("width");
  const std::int64_t queries = heads * setting.size("queries"), keys = heads * setting.size("keys");
  const std::int64_t scores = queries * setting.size("keys"), query = queries * width, key = keys * width;
  if (scores == 0)  // three numbers of masks and scales, or what the values' rounding takes for a moment
    return setting.dtype == Dtype::kBf16 ? std::max(10 * key, 8 * key + 12) : 12;
  const bool rounds = setting.dtype == Dtype::kBf16;
  if (!setting.backward()) return 4 * (2 * scores + queries + query + (rounds ? query + 2 * key : 0));
  return 4 * (7 * scores + query + key + 2 * queries + (rounds ? 2 * query + key : 0));
}

std::string outside_values(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  if (setting.backward() || outputs["out"].numel() == 0) return "";
  const at::Tensor out = outputs["out"].cpu().to(at::kDouble), value = inputs["value"].cpu().to(at::kDouble);
  const at::Tensor beyond = out.abs().amax(-2) - value.abs().amax(-2);  // [batch, heads, width]
  const at::Tensor slack = value.abs().amax(-2) * (setting.dtype == Dtype::kBf16 ? 1e-2 : 1e-4) + 1e-5;
  if (!beyond.gt(slack).any().item<bool>()) return "";
  return "a result is larger than every value of its column";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting&) { check_padding(inputs["padding"]); };
  spec.bound_factor = attention_bound;
  spec.proof = {{"dispatches", "", baseline_dispatches, nothing}, {"peak_bytes", "", baseline_peak, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting&) { return 1; };
  spec.invariants = {{"a result lies among the values", outside_values}};
  spec.refusals = {{"a sample without a key",
                    [](NamedTensors& inputs, Setting&) { inputs["padding"].select(0, 0).fill_(true); },
                    ErrorKind::kOutOfRange, "padding"}};
  return spec;
}

}  // namespace twinbench::energy_flow::fused_attention

// energy_flow.train_step (C24): one optimizer window, from batches of embeddings to parameters that have moved.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "src/energy_flow/common/decoder_share.h"
#include "src/energy_flow/common/flow_lives.h"
#include "src/energy_flow/common/mapper_parameters.h"
#include "src/energy_flow/common/optimizer_rule.h"
#include "src/energy_flow/common/training_window.h"
#include "src/energy_flow/common/window_text_counts.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::train_step {
namespace {

// Neuron; recurrent layers; heads of energy and displacement; the child head.
constexpr const char* kElements =
    "12 + neuron_width * (4 + neuron_width + features + 6) + features + 3 * hidden * (features + 1 + hidden) + "
    "(layers - 1) * 6 * hidden * hidden + layers * 6 * hidden + energy_width * (hidden + 2) + 1 + "
    "head_width * (hidden + 4) + 3 + hidden + 1";

std::string elements() { return std::string(kElements) + " + " + kEncoderElements; }

Signature signature() {
  const Tolerance gradient{Tolerance::Kind::kGradient, {1e-4, 0}, {5e-2, 0}, "grad", {}, {1e-2, 0}};
  const Tolerance moved{Tolerance::Kind::kBound, {1e-4, 1e-7}, {1e-4, 1e-5}, "C24", {}, {1e-4, 1e-5}};
  // Of a mean over all cells, of which few hang on a rounding; where tensor cores round it errs by some 1e-4. A flow's
  // class would not tell a window's losses from their mean.
  const Tolerance loss{Tolerance::Kind::kBound, {1e-4, 1e-6}, {2e-3, 1e-5}, "C24", {}, {2e-3, 1e-5}};
  const Tolerance measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  const auto whole = [](InputSpec input) { return input.batch(std::nullopt).without_gradient(); };
  const auto result = [](const char* name, const char* shape, const Tolerance& tolerance) {
    return output(name, shape, tolerance).batch(std::nullopt);
  };
  const auto exact = [](const char* name, const char* shape) {
    return exact_output(name, shape, Element::kInt64).batch(std::nullopt);
  };
  std::vector<OptionSpec> options = life_options();
  std::erase_if(options, [](const OptionSpec& option) { return option.name == "captured_steps"; });
  options.push_back(texts_option()), options.push_back(ending_option());
  Signature s{
      .derived = {{"cells", Expression("height * width")},
                  {"mapper_middle", Expression("2 * cells")},
                  {"mapper_inner", Expression("max(embedding / 2, 2 * cells)")},
                  {"rows", Expression("micro_steps * micro_batch")},
                  {"counted", Expression(std::to_string(std::int64_t{kCounts}))},
                  {"recorded", Expression(std::to_string(std::int64_t{kRecord}))},
                  {"anomaly_columns", Expression(std::to_string(std::int64_t{kAnomalyColumns}))},
                  {"work_columns", Expression(std::to_string(std::int64_t{kWorkColumns}))}},
      .options = options,
      .inputs = {whole(data("input", "rows, embedding", from_case(1))),
                 whole(data("target", "rows, embedding", from_case(2))), keys("sample_key", "rows").batch(std::nullopt),
                 state("first_moment", "elements", normal(3, 3e-3)).batch(std::nullopt).without_gradient(),
                 state("second_moment", "elements", uniform(4, 1e-6, 1e-4)).batch(std::nullopt).without_gradient(),
                 state("counts", "counted", not_drawn()).of(Element::kInt64).batch(std::nullopt)},
      // loss: of the window, no number where every micro-step was skipped. losses: of each micro-step; their parts
      // where there are texts, 0 where a micro-step has no row, nothing is encoded, nothing decoded.
      .outputs = {result("parameters", "elements", moved).advanced(),
                  result("first_moment", "elements", gradient).advanced(),
                  result("second_moment", "elements", gradient).advanced(), result("gradients", "elements", gradient),
                  result("loss", "1", loss).with_nan(), result("losses", "micro_steps", loss).with_nan(),
                  result("norm", "1", gradient).of(Element::kDouble).with_nan(), exact("counts", "counted"),
                  exact("record", "recorded"), exact("anomaly", "anomaly_columns"),
                  result("energy_losses", "text_steps", loss).with_nan(),
                  result("encoder_losses", "text_steps", loss).with_nan(), result("decoder_losses", "text_steps", loss),
                  result("work", "work_columns", measured).of(Element::kInt64)},
  };
  for (const DerivedSize& one : text_sizes()) s.derived.push_back(one);
  s.derived.push_back({"elements", Expression(elements())});
  add_mapper(s);
  const std::size_t first = s.inputs.size();
  add_networks(s, /*trained=*/true);
  for (std::size_t i = first; i < s.inputs.size(); ++i) {
    InputSpec& input = s.inputs[i];
    if (input.differentiable) input.role = Role::kState;
    input = whole(input);
  }
  add_texts(s);
  return s;
}

void finish_inputs(NamedTensors& inputs, const Setting& s, std::uint64_t seed) {
  const at::Tensor& keys = inputs["sample_key"];
  draw_sample_keys(inputs, s, seed);
  auto* const counts = inputs["counts"].zero_().mutable_data_ptr<std::int64_t>();
  counts[kApplied] = static_cast<std::int64_t>(s.option("applied"));
  counts[kSkippedSteps] = static_cast<std::int64_t>(seed % 5);
  counts[kAttempts] = counts[kApplied] + counts[kSkippedSteps];
  counts[kScaleExponent] = kFirstExponent;
  counts[kGoodSteps] = s.on("about_to_double") ? kGoodStepsToDouble - 1 : 7;
  draw_window_texts(inputs, s, seed);
  if (s.on("toy")) {
    use_toy_networks(inputs, s.size("layers"));
    use_toy_mapper(inputs);
    for (const char* moment : {"first_moment", "second_moment"}) inputs[moment].zero_();
    return;
  }
  start_networks(inputs, s);
  const float awkward[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity()};
  const auto bad = static_cast<std::int64_t>(s.option("bad_rows"));
  // From the window's second row on, one of each row's elements, in the input or in the target.
  for (std::int64_t i = 0; i < bad && i + 1 < keys.numel(); ++i)
    inputs[i % 2 ? "input" : "target"].select(0, i + 1).narrow(0, i % s.size("embedding"), 1).fill_(awkward[i % 3]);
  if (s.on("all_nan"))
    for (const char* name : {"input", "target"}) inputs[name].fill_(awkward[0]);
}

// ---- counts of the baseline, by what it says of its work ------------------------------------------------------------

std::int64_t tensors(const Setting& s) {
  return 20 + 4 * s.size("layers") + (s.option("spawn") == 2 ? 2 : 0) +
         (encodes(s) ? 8 + 12 * s.size("encoder_layers") : 0);
}

std::int64_t reads(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (variant == Variant::kOptimized) return 0;
  const at::Tensor work = outputs["work"].cpu().contiguous(), record = outputs["record"].cpu().contiguous();
  const auto* const of = work.const_data_ptr<std::int64_t>();
  const auto* const told = record.const_data_ptr<std::int64_t>();
  const std::int64_t steps = taken(s), back = steps - told[kSkippedMicro], all = tensors(s);
  if (steps == 0) return 0;
  const std::int64_t flows = of[kFiniteChecks] + 8 * of[kFlowSteps] + 5 * of[kPlacedFlows] + 4 * of[kCollectedFlows] +
                             of[kStopTests] + of[kDecodes] + of[kDecodedTokens];
  const std::int64_t end = back == 0 ? 0 : s.on("tensor_by_tensor") ? 2 * all + 1 : 1;
  // A finite test of the loss each; sanitised rows of input and target.
  return flows + steps * (1 + (s.on("sanitise") ? 2 : 0)) + end +
         (s.on("eager_messages") ? (s.on("text_bridge") ? 8 : 5) * steps + all * back : 0) +
         (s.on("separate_metrics") ? 6 * steps : 0);
}

Cost cost(const Setting& s) {
  const Window window(s);
  if (window.rows() <= 0) return {};
  const auto rows = static_cast<double>(window.rows()), elements = static_cast<double>(s.size("elements")),
             cells = static_cast<double>(s.size("cells"));
  const auto [embedding, inner, middle] = real_sizes<3>(s, {"embedding", "mapper_inner", "mapper_middle"});
  const double mapper = embedding * inner + inner * middle + middle * cells;
  const Setting flows = flow_setting(s, 1, 0, 0);
  const Cost texts = cost_of_texts(s);
  return {4 * (mapper + 6 * elements + 2 * rows * embedding) + texts.bytes,
          rows * (4 * mapper + 6 * expected_flow_steps(flows) * products_of_flow_step(flows)) + 14 * elements +
              texts.flops};
}

// ---- what every window keeps ----------------------------------------------------------------------------------------

std::string counted_wrong(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& s) {
  const at::Tensor before = inputs["counts"].cpu().contiguous(), after = outputs["counts"].cpu().contiguous(),
                   record = outputs["record"].cpu().contiguous();
  const auto *const was = before.const_data_ptr<std::int64_t>(), *const is = after.const_data_ptr<std::int64_t>(),
                    *const told = record.const_data_ptr<std::int64_t>();
  const Window window(s);
  const bool any = window.rows() > 0;
  if (is[kAttempts] != was[kAttempts] + (any ? 1 : 0)) return "attempts are counted wrong";
  const bool applied = told[kStatus] == static_cast<std::int64_t>(WindowStatus::kApplied);
  if (is[kApplied] != was[kApplied] + (applied ? 1 : 0)) return "applied windows are counted wrong";
  if (told[kSkippedMicro] == window.micro_steps && applied) return "a window of nothing but skipped steps was applied";
  return "";
}

// The row-weighted mean of the micro-steps' finite losses.
std::string not_the_mean(const NamedTensors&, const NamedTensors& outputs, const Setting& s) {
  const at::Tensor losses = outputs["losses"].cpu().to(at::kDouble).contiguous();
  const Window window(s);
  double sum = 0, rows = 0;
  for (std::int64_t i = 0; i < window.micro_steps; ++i) {
    const double one = losses.const_data_ptr<double>()[i];
    if (!std::isfinite(one)) continue;
    sum += one * static_cast<double>(window.rows_of(i)), rows += static_cast<double>(window.rows_of(i));
  }
  const double told = outputs["loss"].cpu().to(at::kDouble).item<double>();
  if (rows == 0) return std::isnan(told) ? "" : "a loss of a window without one";
  return std::abs(told - sum / rows) <= 1e-5 * std::abs(told) + 1e-7 ? "" : "the window's loss is not the mean";
}

std::string moved_without_update(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& s) {
  const auto status = outputs["record"].cpu().contiguous().const_data_ptr<std::int64_t>()[kStatus];
  const bool applied = status == static_cast<std::int64_t>(WindowStatus::kApplied);
  const at::Tensor still = at::ones({s.size("elements")}, inputs["first_moment"].options().dtype(at::kBool));
  for (const auto& [first, count] : with_gradient(s, true))
    if (applied) still.narrow(0, first, count).zero_();
  for (const char* name : {"first_moment", "second_moment"})
    if (!inputs[name].masked_select(still).equal(outputs[name].masked_select(still)))
      return std::string(name) + " moved";
  return "";
}

// The total is the energy's loss and the texts' by their weight (C23).
std::string not_the_parts(const NamedTensors&, const NamedTensors& outputs, const Setting& s) {
  if (!s.on("text_bridge")) return "";
  const auto of = [&](const char* name) { return outputs[name].cpu().to(at::kDouble); };
  const at::Tensor decoder = of("decoder_losses"), losses = of("losses"),
                   sum = of("energy_losses") +
                         s.option("text_loss_weight") * (of("encoder_losses") + kDecoderLossShare * decoder);
  if (decoder.lt(0).logical_or(decoder.gt(1)).any().item<bool>()) return "a decoder loss is outside 0 .. 1";
  if (!encodes(s) && of("encoder_losses").count_nonzero().item<std::int64_t>() > 0)
    return "what is not encoded has a loss";
  return at::allclose(losses, sum, 1e-5, 1e-7, /*equal_nan=*/true) ? "" : "a micro-step's loss is not its parts' sum";
}

Refusal count_out_of_range(const char* name, Count of, std::int64_t count) {
  return {name, [=](NamedTensors& inputs, Setting&) { inputs["counts"].select(0, of).fill_(count); },
          ErrorKind::kOutOfRange, "counts"};
}

Setting with_switched(Setting s, const std::string& option) { return with_option(s, option, s.on(option) ? 0 : 1); }

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting& s) {
    check_window(inputs, s), check_texts(inputs, s);
  };
  spec.proof = {{"scalar_reads", "", [](const Setting&) { return std::int64_t{1}; }, nothing, reads},
                {"forward_calls.energy_flow.flow_forward", "", {}, {}, flow_calls},
                {"forward_calls.energy_flow.text_encoder", "", {}, {}, encoder_calls},
                {"forward_calls.energy_flow.text_decoder", "", {}, {}, decoder_calls}};
  spec.cost = cost;
  // In a window that is looked through one for each stage and gradient, and one that gathers these.
  // Of a micro-step's flows 20 + 8 layers a step and what they begin and end with; six beside them; five a window.
  spec.most_launches = [](const Setting& s) {
    const std::int64_t looked = s.option("applied") < s.option("anomaly_steps") ? 7 + encodes(s) + tensors(s) : 0;
    return s.size("micro_steps") * (s.size("max_steps") * (20 + 8 * s.size("layers")) + 31 + looked) + 5 +
           most_text_launches(s);
  };
  spec.invariants = {{"attempts and applied windows agree with the status", counted_wrong},
                     {"the window's loss is the row-weighted mean of finite ones", not_the_mean},
                     {"what is not applied moves nothing", moved_without_update},
                     {"a micro-step's loss is its parts' weighted sum", not_the_parts}};
  spec.relations = {{"loss scaling by a power of two changes no bit",
                     [](const Setting& s) { return with_switched(s, "loss_scaling"); }, /*exact=*/true,
                     /*underflow=*/std::numeric_limits<float>::min()},
                    {"looked through or not, the window is the same",
                     [](Setting s) {
                       if (!s.on("sanitise")) return s;
                       return with_option(s, "anomaly_steps", s.option("anomaly_steps") > 2 ? 0 : 1e6);
                     }},
                    {"a sin or none, the window is the same", [](Setting s) {
                       for (const char* sin : {"eager_messages", "separate_metrics", "trim_every_step", "retained_tape",
                                               "attached_storage", "memory_snapshots", "timer_syncs",
                                               "repeated_forward", "tensor_by_tensor"})
                         s = with_switched(s, sin);
                       return s;
                     }}};
  spec.refusals = {starts_on_a_plane(),
                   of_a_text(text_beyond_its_row()),
                   of_a_text(special_id_with_a_word()),
                   of_a_text({"a wanted text that ends before it begins",
                              [](NamedTensors& inputs, Setting&) {
                                inputs["wanted_offsets"].mutable_data_ptr<std::int64_t>()[1] -= 1 << 20;
                              },
                              ErrorKind::kCorrupt, "wanted_offsets"}),
                   {"texts without an encoder", [](NamedTensors&, Setting& s) { s = with_option(s, "text_bridge", 1); },
                    ErrorKind::kOutOfRange, "encoder_layers"},
                   count_out_of_range("applied windows below 0", kApplied, -1),
                   count_out_of_range("more applied windows than there can be", kApplied, std::int64_t{1} << 40),
                   count_out_of_range("attempts beyond the noise's key", kAttempts, kMostUpdates + 1),
                   count_out_of_range("a loss scale that no float holds", kScaleExponent, 128),
                   {"more missing rows than a micro-batch has",
                    [](NamedTensors&, Setting& s) {
                      s = with_option(s, "missing_rows", static_cast<double>(s.size("micro_batch") + 1));
                    },
                    ErrorKind::kOutOfRange, "missing_rows"}};
  return spec;
}

}  // namespace twinbench::energy_flow::train_step

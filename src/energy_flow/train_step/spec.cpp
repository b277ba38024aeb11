// energy_flow.train_step (C24): one optimizer window, from batches of embeddings to parameters that have moved.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "src/energy_flow/common/flow_lives.h"
#include "src/energy_flow/common/mapper_parameters.h"
#include "src/energy_flow/common/optimizer_rule.h"
#include "src/energy_flow/common/training_window.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::train_step {
namespace {

// Neuron; recurrent layers; heads of energy and displacement; the child head.
constexpr const char* kElements =
    "12 + neuron_width * (4 + neuron_width + features + 6) + features + 3 * hidden * (features + 1 + hidden) + "
    "(layers - 1) * 6 * hidden * hidden + layers * 6 * hidden + energy_width * (hidden + 2) + 1 + "
    "head_width * (hidden + 4) + 3 + hidden + 1";

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
  Signature s{
      .derived = {{"cells", Expression("height * width")},
                  {"mapper_middle", Expression("2 * cells")},
                  {"mapper_inner", Expression("max(embedding / 2, 2 * cells)")},
                  {"rows", Expression("micro_steps * micro_batch")},
                  {"elements", Expression(kElements)},
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
      // loss: of the window, no number where every micro-step was skipped. losses: of each micro-step.
      .outputs = {result("parameters", "elements", moved), result("first_moment", "elements", gradient),
                  result("second_moment", "elements", gradient), result("gradients", "elements", gradient),
                  result("loss", "1", loss).with_nan(), result("losses", "micro_steps", loss).with_nan(),
                  result("norm", "1", gradient).of(Element::kDouble).with_nan(), exact("counts", "counted"),
                  exact("record", "recorded"), exact("anomaly", "anomaly_columns"),
                  result("work", "work_columns", measured).of(Element::kInt64)},
  };
  add_mapper(s);
  const std::size_t first = s.inputs.size();
  add_networks(s, /*trained=*/true);
  for (std::size_t i = first; i < s.inputs.size(); ++i) {
    InputSpec& input = s.inputs[i];
    if (input.differentiable) input.role = Role::kState;
    input = whole(input);
  }
  return s;
}

void finish_inputs(NamedTensors& inputs, const Setting& s, std::uint64_t seed) {
  const at::Tensor& keys = inputs["sample_key"];
  for (std::int64_t row = 0; row < keys.numel(); ++row)
    keys.mutable_data_ptr<std::int64_t>()[row] = static_cast<std::int64_t>(seed % 1000) + 7 * row;
  auto* const counts = inputs["counts"].zero_().mutable_data_ptr<std::int64_t>();
  counts[kApplied] = static_cast<std::int64_t>(s.option("applied"));
  counts[kSkippedSteps] = static_cast<std::int64_t>(seed % 5);
  counts[kAttempts] = counts[kApplied] + counts[kSkippedSteps];
  counts[kScaleExponent] = kFirstExponent;
  counts[kGoodSteps] = s.on("about_to_double") ? kGoodStepsToDouble - 1 : 7;
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

std::int64_t tensors(const Setting& s) { return 20 + 4 * s.size("layers") + (s.option("spawn") == 2 ? 2 : 0); }

std::int64_t reads(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (variant == Variant::kOptimized) return 0;
  const at::Tensor work = outputs["work"].cpu().contiguous(), record = outputs["record"].cpu().contiguous();
  const auto* const of = work.const_data_ptr<std::int64_t>();
  const auto* const told = record.const_data_ptr<std::int64_t>();
  const Window window(s);
  if (window.rows() <= 0) return 0;
  std::int64_t taken = 0;  // micro-steps with rows
  for (std::int64_t i = 0; i < window.micro_steps; ++i) taken += window.rows_of(i) > 0;
  const std::int64_t back = taken - told[kSkippedMicro], all = tensors(s);
  const std::int64_t flows =
      of[kFiniteChecks] + 8 * of[kFlowSteps] + 5 * of[kPlacedFlows] + 4 * of[kCollectedFlows] + of[kStopTests];
  const std::int64_t end = back == 0 ? 0 : s.on("tensor_by_tensor") ? 2 * all + 1 : 1;
  // A finite test of the loss each; sanitised rows of input and target.
  return flows + taken * (1 + (s.on("sanitise") ? 2 : 0)) + end +
         (s.on("eager_messages") ? 5 * taken + all * back : 0) + (s.on("separate_metrics") ? 6 * taken : 0);
}

Cost cost(const Setting& s) {
  const Window window(s);
  if (window.rows() <= 0) return {};
  const auto rows = static_cast<double>(window.rows()), elements = static_cast<double>(s.size("elements")),
             cells = static_cast<double>(s.size("cells"));
  const auto [embedding, inner, middle] = real_sizes<3>(s, {"embedding", "mapper_inner", "mapper_middle"});
  const double mapper = embedding * inner + inner * middle + middle * cells;
  const Setting flows = flow_setting(s, 1, 0, 0);
  return {4 * (mapper + 6 * elements + 2 * rows * embedding),
          rows * (4 * mapper + 6 * expected_flow_steps(flows) * products_of_flow_step(flows)) + 14 * elements};
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
  const std::int64_t child = s.size("hidden") + 1, elements = s.size("elements");
  const std::int64_t from = !applied ? 0 : s.option("spawn") == 2 ? elements : elements - child;
  for (const char* name : {"first_moment", "second_moment"})
    if (!inputs[name].slice(0, from).equal(outputs[name].slice(0, from))) return std::string(name) + " moved";
  return "";
}

Setting with_switched(Setting s, const std::string& option) { return with_option(s, option, s.on(option) ? 0 : 1); }

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.proof = {{"scalar_reads", "", [](const Setting&) { return std::int64_t{1}; }, nothing, reads}};
  spec.cost = cost;
  // In a window that is looked through one for each stage and gradient, and one that gathers these.
  // Of a micro-step's flows 20 + 8 layers a step and what they begin and end with; six beside them; five a window.
  spec.most_launches = [](const Setting& s) {
    const std::int64_t looked = s.option("applied") < s.option("anomaly_steps") ? 7 + tensors(s) : 0;
    return s.size("micro_steps") * (s.size("max_steps") * (20 + 8 * s.size("layers")) + 31 + looked) + 5;
  };
  spec.invariants = {{"attempts and applied windows agree with the status", counted_wrong},
                     {"the window's loss is the row-weighted mean of finite ones", not_the_mean},
                     {"what is not applied moves nothing", moved_without_update}};
  spec.relations = {{"loss scaling by a power of two changes no bit",
                     [](Setting s) {
                       constexpr int kMostLayers = 8;  // through many, gradients shrink below the least normal number
                       return s.size("layers") > kMostLayers ? s : with_switched(s, "loss_scaling");
                     }},
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
  spec.refusals = {starts_on_a_plane()};
  return spec;
}

}  // namespace twinbench::energy_flow::train_step

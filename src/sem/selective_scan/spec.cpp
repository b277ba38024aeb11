// sem.selective_scan (C13): the complex selective state space model, a linear recurrence with input-dependent decay.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/sem/common/scan_limits.h"
#include "src/spec_parts.h"

namespace twinbench::sem::selective_scan {
namespace {

Signature signature() {
  const Tolerance scanned{Tolerance::Kind::kBound, {2e-6, 2e-6}, {2e-6, 2e-6}, "C13"};  // times scan_bound
  return {
      .derived = {{"parts", Expression("2 * width")}},
      .inputs = {data("input", "2, batch, steps, groups, width", from_case(1)).batch(1).of(Element::kPlanar),
                 bias("a_raw", "groups, states", uniform(2, 0.5, 1)), bias("a_phase", "groups, states", normal(3, 0.1)),
                 weight("input_projection", "2, states, width", fan_in(4, "width")).of(Element::kPlanar),
                 weight("output_projection", "2, width, states", fan_in(5, "states")).of(Element::kPlanar),
                 weight("dt_weight", "2, parts", fan_in(6, "parts")), bias("dt_bias", "2", uniform(7, -0.1, 0.1))},
      .outputs = {output("output", "2, batch, steps, groups, width", scanned)
                      .batch(1)
                      .of(Element::kPlanar)
                      .with_nan()
                      .with_gradient(8),
                  output("largest_state", "batch", scanned).with_nan()},
      .gradient = {Tolerance::Kind::kGradient, {2e-5, 1e-9}, {2e-5, 1e-9}, "C13"},
  };
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  inputs["dt_bias"].add_(setting.option("step_shift"));
  if (setting.on("pure_rotation")) inputs["a_raw"].fill_(-100);
  if (setting.on("fast_decay"))  // e^-20 a step; less than fp32 has; less than its exponents can say
    for (std::int64_t i = 0; i < inputs["a_raw"].numel(); ++i)
      inputs["a_raw"].mutable_data_ptr<float>()[i] = i % 3 == 0 ? 20.0f : i % 3 == 1 ? 100.0f : 400.0f;
  if (setting.on("wide_turns")) inputs["a_phase"].mul_(100);
  const std::int64_t steps = setting.size("steps"), groups = setting.size("groups"), width = setting.size("width");
  if (setting.on("nan_step") && inputs["input"].numel() > 0)
    inputs["input"].mutable_data_ptr<float>()[(steps / 2 * groups + groups / 2) * width] =
        std::numeric_limits<float>::quiet_NaN();
}

// What the bounds depend on, from the generated inputs.
struct Reach {
  double angle = 0;   // largest turn of a step
  double slow = 1;    // 10 where a decay is nearer to 1 than 0.9: rounding errors add up for longer
  double state = 0;   // about the largest state
  double output = 0;  // about the largest output
};

double largest(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? 0 : tensor.nan_to_num().abs().max().item().toDouble();
}
double longest_row(const at::Tensor& planes) {  // of [2, rows, columns] complex numbers
  return planes.numel() == 0 ? 0
                             : planes.nan_to_num().square().sum(at::IntArrayRef{0, 2}).max().sqrt().item().toDouble();
}

Reach reach_of(const NamedTensors& inputs, const Setting& setting) {
  const std::int64_t width = setting.size("width"), steps = setting.size("steps");
  const at::Tensor input = inputs["input"].to(at::kDouble).nan_to_num().reshape({2, -1, width});
  const at::Tensor logits =
      at::cat({input[0], input[1]}, 1).matmul(inputs["dt_weight"].to(at::kDouble).t()) + inputs["dt_bias"];
  const at::Tensor step = logits.exp().clamp(kShortestStep, kLongestStep);
  const at::Tensor rates = at::softplus(inputs["a_raw"].to(at::kDouble));
  Reach reach;
  if (step.numel() == 0) return reach;
  const double slowest = rates.min().item().toDouble(), shortest = step.select(1, 0).min().item().toDouble();
  const double longest = step.select(1, 0).max().item().toDouble();
  reach.angle = step.select(1, 1).max().item().toDouble() * largest(inputs["a_phase"]);
  reach.slow = std::exp(-shortest * slowest) > 0.9 ? 10 : 1;
  const double added = std::min(longest * static_cast<double>(steps), longest / -std::expm1(-longest * slowest));
  reach.state = longest_row(inputs["input_projection"]) * longest_row(input) * added;
  reach.output = 2 * longest_row(inputs["output_projection"]) * reach.state;
  return reach;
}

// Relative to the largest value, as the specification has it, and ten times that where states last long; the rounding
// of an angle is that of its size.
double scan_bound(const std::string& output, const NamedTensors& inputs, const Setting& setting) {
  const Reach reach = reach_of(inputs, setting);
  const double rounding = reach.slow * (1 + reach.angle);
  if (output == "output") return std::clamp(rounding * reach.output, 1e-3, 1e6);
  if (output == "largest_state") return std::clamp(rounding * reach.state, 1e-3, 1e6);
  // Two scalars with cancellation: 2e-4 instead of 2e-5.
  return std::clamp(rounding * (output == "grad_dt_bias" ? 10 : 1), 1.0, 1e3);
}

// Dispatches. Forward: the numbers become complex (1, and one each of the two projections), both planes of the input in
// a row 1, step sizes 3, rates 1, decays 3, turns 1, both joined 1, inputs of the states 2, the state before the first
// step 1; a product and a sum a step; output and its planes 2, largest state 2. Backward all of that but the last four;
// its output's gradient 1, gradients of the states and of the output projection 5, zeros 2; five a step, two fewer at
// the first; lengths and turns 7, rates 5, phases 2, logits 7, projected inputs 1, input 6, input projection 3, step
// sizes' parameters 2.
std::int64_t baseline_dispatches(const Setting& s) {
  const std::int64_t steps = s.size("steps");
  if (s.size("batch") * steps == 0) return 0;
  return s.backward() ? 7 * steps + 55 : 2 * steps + 20;
}

// The state of every step goes to its place; backwards that too and the error terms.
std::int64_t baseline_copies(const Setting& s) {
  if (s.size("batch") == 0) return 0;
  return s.backward() && s.size("steps") > 0 ? 3 * s.size("steps") - 1 : s.size("steps");
}

// Read: the input and the parameters; written: the output. Backward: the output's gradient and all other ones, too.
// FLOPs a step, group and batch item: the two projections, 8 a product; the step sizes; ten a state. Backward: the
// first projection again, and the gradients of both operands of both.
Cost cost(const Setting& s) {
  const auto [batch, steps, groups, width, states] = real_sizes<5>(s, {"batch", "steps", "groups", "width", "states"});
  const double rows = batch * steps * groups;
  const double parameters = 4 * (2 * groups * states + 4 * states * width + 4 * width + 2);
  if (!s.backward())
    return {16 * rows * width + parameters + 4 * batch, rows * (16 * states * width + 8 * width + 8 * states)};
  return {24 * rows * width + 2 * parameters, rows * (40 * states * width + 16 * width + 20 * states)};
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting&) { check_phases(inputs["a_phase"]); };
  spec.bound_factor = scan_bound;
  spec.proof = {{"dispatches", "", baseline_dispatches, nothing}, {"copies", "", baseline_copies, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting& s) { return s.backward() ? 4 : 3; };
  spec.relations = {{"chunks of another length",
                     [](Setting setting) {
                       setting.input_case.options["chunk"] = setting.option("chunk") == 5 ? 0 : 5;
                       return setting;
                     },
                     /*exact=*/false}};
  spec.refusals = {{"a phase beyond rounding",
                    [](NamedTensors& inputs, Setting&) { inputs["a_phase"].mutable_data_ptr<float>()[0] = 5000; },
                    ErrorKind::kOutOfRange, "a_phase"}};
  return spec;
}

}  // namespace twinbench::sem::selective_scan

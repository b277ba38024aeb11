// trainer2.fused_retrieval (C10, C11): soft-min weights over geometric costs of tokens and bank slots, and their mix.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/operand_bytes.h"
#include "src/spec_parts.h"
#include "src/trainer2/common/candidates.h"
#include "src/trainer2/common/metric_state.h"
#include "src/trainer2/common/plane_cases.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2::fused_retrieval {
namespace {

Signature signature() {
  const Tolerance mix{Tolerance::Kind::kBound, {1e-5, 1e-6}, {1e-5, 1e-6}, "EQ2", {1e-5, 1e-6}};  // times mix_bound
  const Tolerance weights{Tolerance::Kind::kBound, {2e-5, 1e-6}, {2e-5, 1e-6}, "C10", {2e-5, 1e-6}};
  const auto shared = [](InputSpec input) { return input.batch(std::nullopt).without_gradient(); };
  const auto of_sample = [](InputSpec input) { return input.without_gradient(); };
  return {
      .derived = plane_sizes(),
      .inputs = {of_sample(data("query", "batch, axes", from_case(1))),
                 of_sample(data("curvature", "batch", uniform(2, 0.2, 1.2))),
                 of_sample(data("token_coordinates", "batch, tokens, axes", from_case(3))),
                 of_sample(data("token_states", "batch, tokens, width", from_case(4))),
                 of_sample(data("mask", "batch, tokens", not_drawn())),
                 shared(data("bank_coordinates", "capacity, axes", from_case(5))),
                 weight("bank_states", "capacity, width", from_case(6)).without_gradient(),
                 keys("filled", "1").batch(std::nullopt), shared(gain("metric", "axes", uniform(7, 0.05, 3))),
                 shared(data("theta", "planes", uniform(8, -3, 3))), keys("plane_axes", "slots, 2").batch(std::nullopt),
                 keys("inspected", "inspected").batch(std::nullopt)},
      .outputs = {output("mix", "batch, width", mix).with_nan(),
                  output("weights", "batch, inspected", weights).with_nan()},
  };
}

float* floats(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }

std::int64_t filled_slots(const Setting& setting) {
  return static_cast<std::int64_t>(setting.option("filled_share") * static_cast<double>(setting.size("capacity")));
}

// Valid tokens of a sample: all, or from none up to all but one in turn.
std::int64_t valid_tokens(const Setting& setting, std::int64_t sample) {
  if (setting.on("no_tokens")) return 0;
  const std::int64_t tokens = setting.size("tokens");
  return setting.on("ragged") ? 3 * sample % tokens : tokens;
}
double pairs(const Setting& setting) {
  std::int64_t sum = 0;
  for (std::int64_t sample = 0; sample < setting.size("batch"); ++sample)
    sum += valid_tokens(setting, sample) + filled_slots(setting);
  return static_cast<double>(sum);
}

at::Tensor whole_numbers(std::int64_t count, std::int64_t first, std::int64_t step, std::int64_t modulus) {
  const at::Tensor values = at::empty({count}, at::kLong);
  for (std::int64_t i = 0; i < count; ++i)
    values.mutable_data_ptr<std::int64_t>()[i] = (first + i * step) % std::max<std::int64_t>(modulus, 1);
  return values;
}

void plant_not_finite(NamedTensors& inputs, const Setting& setting) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  const at::Tensor &coordinates = inputs["bank_coordinates"], &states = inputs["bank_states"];
  const std::int64_t filled = filled_slots(setting), empty = setting.size("capacity") - filled;
  if (setting.on("nan_in_empty_slots")) {
    coordinates.slice(0, filled, filled + empty).fill_(kNan);
    states.slice(0, filled, filled + empty).fill_(kNan);
    for (std::int64_t sample = 0; sample < setting.size("batch"); ++sample) {
      const std::int64_t from = valid_tokens(setting, sample);
      inputs["token_coordinates"].select(0, sample).slice(0, from).fill_(kNan);
      inputs["token_states"].select(0, sample).slice(0, from).fill_(kNan);
    }
  }
  if (setting.on("nan_state") && filled > 0) floats(states)[(filled - 1) * setting.size("width")] = kNan;
  if (setting.on("nan_coordinate") && filled > 0) floats(coordinates)[(filled / 2) * setting.size("axes")] = kNan;
  if (setting.on("nan_query") && setting.size("batch") > 0) floats(inputs["query"])[0] = kNan;
  if (setting.on("infinite_costs")) {
    for (std::int64_t slot = 0; slot < filled; slot += 2) floats(coordinates)[slot * setting.size("axes")] = 3e38f;
    if (setting.size("batch") > 0) floats(inputs["curvature"])[0] = kInfinity;  // all of this sample's: its mix is NaN
  }
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  const std::int64_t batch = setting.size("batch"), tokens = setting.size("tokens"), axes = setting.size("axes");
  inputs.set("plane_axes", planes_of(setting));
  inputs.set("filled", at::full({1}, filled_slots(setting), at::kLong));
  inputs.set("inspected", whole_numbers(setting.size("inspected"), static_cast<std::int64_t>(seed % 2), 1,
                                        tokens + setting.size("capacity")));
  for (std::int64_t sample = 0; sample < batch; ++sample)
    inputs["mask"].select(0, sample).slice(0, 0, valid_tokens(setting, sample)).fill_(1);
  if (setting.on("zero_curvature")) inputs["curvature"].zero_();
  if (setting.on("tiny_curvature")) inputs["curvature"].fill_(1e-6);
  if (const auto kind = static_cast<int>(setting.option("denormal_states")); kind > 0)
    for (const char* name : {"token_states", "bank_states"}) inputs[name].mul_(kind == 1 ? 1e-39 : 3e-6);
  if (setting.on("far_angles")) inputs["theta"].mul_(3.3e6);
  if (setting.on("ties"))  // every second token and slot is where the first one is
    for (const char* name : {"token_coordinates", "bank_coordinates"}) {
      const at::Tensor rows = inputs[name].view({-1, axes});
      for (std::int64_t row = 0; row + 1 < rows.size(0); row += 2) rows.select(0, row + 1).copy_(rows.select(0, row));
    }
  plant_not_finite(inputs, setting);
}

double largest(const at::Tensor& tensor) {
  double most = 0;
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    if (const double value = std::abs(double{floats(tensor)[i]}); std::isfinite(value)) most = std::max(most, value);
  return most;
}

// Of the mix the largest state, of the weights 1e-7 * beta * cost in units of the 2e-5 that they always have: the
// exponential amplifies a cost's rounding by beta. Where that is so much that one candidate takes all, nothing is left
// to be amplified.
double retrieval_bound(const std::string& output, const NamedTensors& inputs, const Setting& setting) {
  constexpr double kOneTakesAll = 1e6;
  if (output == "mix")
    return std::clamp(std::max(largest(inputs["token_states"]), largest(inputs["bank_states"])), 1.0, 1e5);
  const double beta = setting.option("beta");
  const double reach =
      largest(inputs["query"]) + std::max(largest(inputs["token_coordinates"]), largest(inputs["bank_coordinates"]));
  const double cost = largest(inputs["curvature"]) * std::sqrt(3.0) * std::min(reach, 1e3);
  return beta > kOneTakesAll ? 1 : std::clamp(beta * cost / 200, 1.0, 100.0);
}

// Read: what valid candidates have, the queries, metric and angles. A cost: three operations an axis, a root, an
// exponential and about ten more; the mix: a product and a sum an element.
Cost cost(const Setting& setting) {
  const auto [batch, tokens, width, axes, planes, inspected] =
      real_sizes<6>(setting, {"batch", "tokens", "width", "axes", "planes", "inspected"});
  const double filled = static_cast<double>(filled_slots(setting)), all = pairs(setting),
               of_tokens = all - batch * filled;
  const double bytes = 4 * of_tokens * (axes + width) + filled * (4 * axes + operand_bytes(setting) * width) +
                       4 * batch * (tokens + axes + 1 + width + inspected) + 4 * (axes + planes);
  return {bytes, all * (3 * axes + 4 + 2 * width)};
}

// Three concatenations, the mask of filled slots with its numbers and the mask of tokens; the rotation of query and
// candidates; displacement, six of the quadratic form and the curvature; the soft-min and the mix with the masks they
// need (four, and two or three for a soft-min that has no operator of its own); the weights that are asked for.
std::int64_t baseline_dispatches(const Setting& setting) {
  const std::int64_t rotation = 2 * 8 * setting.size("planes");  // sine, cosine, four products, two sums; twice
  const std::int64_t mix = setting.on("fused_mix") ? 9 : 13;
  return 6 + rotation + 8 + mix + 1 + (setting.on("sentinel_mask") ? 3 : 0);
}

std::string unbalanced(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const std::int64_t all = setting.size("tokens") + setting.size("capacity");
  const at::Tensor weights = outputs["weights"].cpu().to(at::kDouble).contiguous();
  if (weights.size(1) != all) return "";  // only some were asked for
  const std::int64_t filled = *inputs["filled"].const_data_ptr<std::int64_t>();
  for (std::int64_t sample = 0; sample < weights.size(0); ++sample) {
    double sum = 0;
    for (std::int64_t i = 0; i < all; ++i) {
      const double weight = weights.const_data_ptr<double>()[sample * all + i];
      const std::int64_t candidate = inputs["inspected"].const_data_ptr<std::int64_t>()[i],
                         slot = candidate - setting.size("tokens");
      sum += weight;
      if (slot >= filled && weight != 0) return "the empty slot " + std::to_string(slot) + " has a weight";
    }
    const bool any = filled + valid_tokens(setting, sample) > 0;
    if (!std::isnan(sum) && std::abs(sum - (any ? 1 : 0)) > 1e-6 * std::max<double>(1, static_cast<double>(all) / 64))
      return "the weights of sample " + std::to_string(sample) + " add up to " + std::to_string(sum);
  }
  return "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting& setting) {
    check_metric(inputs["metric"]);
    check_planes(inputs["plane_axes"], setting.size("axes"));
    check_filled(inputs["filled"], setting.size("capacity"));
    check_inspected(inputs["inspected"], setting.size("tokens") + setting.size("capacity"));
  };
  spec.bound_factor = retrieval_bound;
  spec.proof = {{"dispatches", "", baseline_dispatches, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting&) { return 1; };
  spec.invariants = {{"weights add up to one, empty slots have none", unbalanced}};
  spec.refusals = plane_refusals();
  spec.refusals.push_back({"more filled slots than there are",
                           [](NamedTensors& inputs, Setting& setting) {
                             *inputs["filled"].mutable_data_ptr<std::int64_t>() = setting.size("capacity") + 1;
                           },
                           ErrorKind::kOutOfRange, "filled"});
  spec.refusals.push_back({"a metric outside its bounds",
                           [](NamedTensors& inputs, Setting&) { floats(inputs["metric"])[0] = 0; },
                           ErrorKind::kOutOfRange, "metric"});
  spec.refusals.push_back({"a candidate that is not there",
                           [](NamedTensors& inputs, Setting& setting) {
                             *inputs["inspected"].mutable_data_ptr<std::int64_t>() =
                                 setting.size("tokens") + setting.size("capacity");
                           },
                           ErrorKind::kOutOfRange, "inspected"});
  return spec;
}

}  // namespace twinbench::trainer2::fused_retrieval

// energy_flow.flow_backward (C17): from the gradient of the output surfaces to those of everything that flows are
// carried by, through all of their steps.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "src/energy_flow/common/flow_networks.h"
#include "src/energy_flow/common/flow_work.h"
#include "src/inputs.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

Signature signature() {
  const Tolerance run{Tolerance::Kind::kBound, {1e-3, 1e-4}, {6e-2, 3e-2}, "run"};
  const Tolerance measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  Signature s{
      .derived = {{"cells", Expression("height * width")},
                  {"work_columns", Expression(std::to_string(std::int64_t{kWorkColumns}))}},
      .options = {choice_option("spawn", {"off", "movement", "gate"}, "movement", "spawn_mode: what flows spawn by"),
                  choice_option("boundary", {"reflect", "kill"}, "reflect",
                                "boundary_mode: what happens to a flow that leaves the lattice in x or y"),
                  choice_option("on_stop", {"project", "drop"}, "project",
                                "what becomes of the active flows of a sample that stops")},
      .inputs = {data("initial_energy", "samples, cells", from_case(1)), keys("sample_key", "samples")},
      // margin: as the forward pass has it, and of what a gradient's comparison adds (0.5); at most 1.
      .outputs = {output("surface", "samples, cells", run).with_nan().with_gradient(2),
                  output("margin", "samples", run),
                  output("work", "work_columns", measured).of(Element::kInt64).batch(std::nullopt)},
  };
  add_networks(s, /*trained=*/true);
  return s;
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  const std::int64_t samples = setting.size("samples");
  auto* const key = inputs["sample_key"].mutable_data_ptr<std::int64_t>();
  for (std::int64_t b = 0; b < samples; ++b) key[b] = static_cast<std::int64_t>(seed % 1000) + 7 * b;
  if (setting.on("toy")) {
    use_toy_networks(inputs, setting.size("layers"));
    const std::vector<float> mapped = {-0.96577987f, 0.94287429f, -0.45092188f, -0.93074377f};
    return plant(inputs["initial_energy"], 1, mapped);
  }
  start_networks(inputs, setting);
  const std::vector<float> awkward = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                                      -std::numeric_limits<float>::infinity(), 10.5f, -10.0f};
  if (setting.on("non_finite")) plant(inputs["initial_energy"], 5, awkward);
  if (setting.on("nothing_completes")) inputs["displacement_out_weight"].zero_();
}

// ---- counts of the baseline, by what it says of its work ------------------------------------------------------------

struct Counts {
  std::int64_t flow_steps, stop_tests, placed, children, collected, cells, tape_bytes, tape_left;
};

Counts counts_of(const NamedTensors& outputs) {
  const at::Tensor work = outputs["work"].cpu().contiguous();
  const auto* const of = work.const_data_ptr<std::int64_t>();
  return {of[kFlowSteps],      of[kStopTests],    of[kPlacedFlows], of[kChildren],
          of[kCollectedFlows], of[kCellsReached], of[kTapeBytes],   of[kTapeLeft]};
}

std::int64_t reads(Variant variant, const NamedTensors& outputs, const Setting&) {
  if (variant == Variant::kOptimized) return 0;
  const Counts c = counts_of(outputs);
  return 8 * c.flow_steps + 5 * c.placed + 4 * c.collected + c.stop_tests;
}

// A flow's three buffers before and after each step, a clone of its parent's; on the tape a layer's input and a part of
// each product that is a tensor of its own; a gradient into and out of the adjoints of its first and last step.
std::int64_t copies(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (variant == Variant::kOptimized) return 0;
  const Counts c = counts_of(outputs);
  return c.flow_steps * (7 + s.size("layers")) + 3 * c.children + c.collected + c.placed;
}

// Forward, a flow-step: neuron 9 and what replaces an energy that is no number 7, carrier 9 and 13 a layer, heads 9,
// move and reflection 5 (with noise 2 more; without reflection 4 fewer), reads and rules 14; in gate mode 7 more.
// Beside them surfaces and the records of zeros.
std::int64_t forward_dispatches(const Counts& c, const Setting& s) {
  const bool gate = s.option("spawn") == 2;
  const std::int64_t noise = s.on("noise") ? 2 : 0, kill = s.on("boundary") ? -4 : 0;
  return c.flow_steps * (53 + 13 * s.size("layers") + noise + kill + (gate ? 7 : 0)) + 3 * c.placed + 4 * c.cells +
         (gate ? c.children : 0) + c.collected + c.stop_tests + 3;
}

// The replay, a flow-step: reflection 2, heads 22, guards 16 (a selection against a number makes that a tensor first),
// neuron 17, coordinates 3, joins 3, 20 a layer; a child 3, in gate mode 8; zeros for each flow's adjoint 3, for each
// parameter's gradient 1; a cell 5.
std::int64_t backward_dispatches(const Counts& c, const Setting& s) {
  const std::int64_t layers = s.size("layers"), child = s.option("spawn") == 2 ? 8 : 3;
  return c.flow_steps * (63 + 20 * layers) + c.children * (3 + child) + 3 * c.placed + 5 * c.cells + 23 + 4 * layers;
}

std::int64_t dispatches(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (variant == Variant::kOptimized) return 0;
  const Counts c = counts_of(outputs);
  return forward_dispatches(c, s) + (s.backward() ? backward_dispatches(c, s) : 0);
}

// How many steps a flow lives, about: data decide. Children live as long as others.
double expected_flow_steps(const Setting& s) {
  const auto [samples, cells, quota, most] = real_sizes<4>(s, {"samples", "cells", "quota", "max_steps"});
  const double age = s.option("projection_age"), steps = age > 0 ? std::min(age, most) : most;
  return samples * std::min(cells, quota) * steps * (s.option("spawn") > 0 ? 0.75 : 0.5);
}

Cost cost(const Setting& s) {
  double bytes = 0;
  const auto add = [&](const auto& tensors) {
    for (const auto& tensor : tensors) {
      double elements = tensor.element == Element::kInt64 ? 8 : 4;
      for (const std::int64_t extent : extents(tensor.shape, s)) elements *= static_cast<double>(extent);
      bytes += elements;
    }
  };
  add(inputs_of(*s.signature, s));
  add(outputs_of(*s.signature, s));
  const auto [hidden, layers, features, width, energy, head] =
      real_sizes<6>(s, {"hidden", "layers", "features", "neuron_width", "energy_width", "head_width"});
  const double neuron = 9 + width * (4 + width + features);
  const double carrier = 3 * hidden * (features + 1 + (2 * layers - 1) * hidden);
  const double heads = hidden * (energy + head) + energy + 3 * head;
  // Forward once, and back by inputs and by parameters; a flow's share of its cell and of the cell's gradient.
  const auto [samples, cells, quota] = real_sizes<3>(s, {"samples", "cells", "quota"});
  return {bytes, (s.backward() ? 6 : 2) * expected_flow_steps(s) * (neuron + carrier + heads) +
                     4 * samples * std::min(cells, quota)};
}

// Samples in which a decision, or a gradient's kink, lies so close that rounding may decide it (specification 0.5).
at::Tensor within_margin(const NamedTensors& outputs, const Setting&) { return outputs["margin"].lt(1e-5); }

Setting with_option(Setting s, const std::string& option, double value) {
  s.input_case.options[option] = value;
  return s;
}

std::string held_distances(const Setting& s) {
  const bool projects = s.option("projection_age") > 0 || !s.on("on_stop");
  // In the worked examples no two projected flows share a cell.
  return projects && !s.on("toy") ? "the distance of a projected flow is a constant of its weight (decision 16)" : "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.ambiguous = within_margin;
  spec.custom_gradient = held_distances;
  // An upper bound for whoever has no outputs: as many flows as there can be, in every step that they can live.
  const auto at_most = [](const Setting& s) {
    const auto age = static_cast<std::int64_t>(s.option("projection_age"));
    const std::int64_t steps = s.size("max_steps"), quota = s.size("quota");
    const std::int64_t flows = s.option("spawn") > 0 ? quota : std::min(s.size("cells"), quota);
    return s.size("samples") * flows * (age > 0 ? std::min(age, steps) : steps) * (140 + 33 * s.size("layers"));
  };
  spec.proof = {{"scalar_reads", "", {}, {}, reads},
                {"copies", "", {}, {}, copies},
                {"dispatches", "", at_most, nothing, dispatches}};
  spec.cost = cost;
  spec.relations = {{"computed again or kept",
                     [](Setting s) { return with_option(s, "keep_everything", s.on("keep_everything") ? 0 : 1); }}};
  spec.refusals = {{"an output plane as start",
                    [](NamedTensors&, Setting& setting) { setting.input_case.options["depth"] = 1; },
                    ErrorKind::kOutOfRange, "depth"}};
  return spec;
}

}  // namespace twinbench::energy_flow::flow_backward

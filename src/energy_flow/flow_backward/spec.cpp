// energy_flow.flow_backward (C17): from the gradient of the output surfaces to those of everything that flows are
// carried by, through all of their steps. Checkpointing (C31) is part of it: without it nothing else is computed, its
// baseline is this one, and what it must match is this optimized build in another setting.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "src/energy_flow/common/flow_lives.h"
#include "src/energy_flow/common/flow_networks.h"
#include "src/energy_flow/common/flow_work.h"
#include "src/inputs.h"
#include "src/spec_parts.h"
#include "src/stored_states.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

Signature signature() {
  const Tolerance run{Tolerance::Kind::kBound, {1e-3, 1e-4}, {6e-2, 3e-2}, "run", {}, {2e-2, 1e-2}};
  const Tolerance measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  Signature s{
      .derived = {{"cells", Expression("height * width")},
                  {"work_columns", Expression(std::to_string(std::int64_t{kWorkColumns}))}},
      .options = life_options(),
      .inputs = {data("initial_energy", "samples, cells", from_case(1)), keys("sample_key", "samples")},
      // margin: as the forward pass has it, and of what a gradient's comparison adds (0.5); at most 1.
      .outputs = {output("surface", "samples, cells", run).with_nan().with_gradient(2),
                  output("margin", "samples", run),
                  output("work", "work_columns", measured).of(Element::kInt64).batch(std::nullopt)},
      .gradient = {Tolerance::Kind::kGradient, {1e-4, 0}, {5e-2, 0}, "grad", {}, {1e-2, 0}},
  };
  add_networks(s, /*trained=*/true);
  return s;
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  draw_sample_keys(inputs, setting, seed);
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

// In bf16 mode an operand takes two conversions: forward position, state, two hidden layers, what the heads take and
// their two hidden layers, in gate mode the gate's, and a state that is stored in bf16; back a gradient for each of the
// eight layers, and for a child's.
std::int64_t roundings(const Counts& c, const Setting& s) {
  const std::int64_t gate = s.option("spawn") == 2 ? 1 : 0, stored = keeps_bf16(s) ? c.flow_steps : 0;
  if (s.dtype != Dtype::kBf16) return stored;
  return stored + c.flow_steps * (7 + gate) + (s.backward() ? 8 * c.flow_steps + gate * c.children : 0);
}

// A flow's three buffers before and after each step, a clone of its parent's; on the tape a layer's input and a part of
// each product that is a tensor of its own; a gradient into and out of the adjoints of its first and last step.
std::int64_t copies(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (variant == Variant::kOptimized) return 0;
  const Counts c = counts_of(outputs);
  return c.flow_steps * (7 + s.size("layers")) + 3 * c.children + c.collected + c.placed + 2 * roundings(c, s);
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

Cost cost(const Setting& s) {
  // Forward once, and back by inputs and by parameters; a flow's share of its cell and of the cell's gradient.
  const auto [samples, cells, quota] = real_sizes<3>(s, {"samples", "cells", "quota"});
  return {bytes_of_tensors(s), (s.backward() ? 6 : 2) * expected_flow_steps(s) * products_of_flow_step(s) +
                                   4 * samples * std::min(cells, quota)};
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
  // For whoever has no outputs.
  const auto at_most = [](const Setting& s) { return most_flow_steps(s) * (140 + 33 * s.size("layers")); };
  spec.proof = {{"scalar_reads", "", {}, {}, reads},
                {"copies", "", {}, {}, copies},
                {"dispatches", "", at_most, nothing, dispatches}};
  spec.cost = cost;
  // The forward pass's, for as many steps as can be issued; 20 + 8 layers a step with the way back.
  spec.most_launches = [](const Setting& s) { return s.size("max_steps") * (8 + 3 * s.size("layers")) + 15; };
  spec.relations = {{"computed again or kept",
                     [](Setting s) { return with_option(s, "keep_everything", s.on("keep_everything") ? 0 : 1); }},
                    {"states of every second step, or of all",
                     [](Setting s) { return with_option(s, "ckpt_every", s.on("ckpt_every") ? 0 : 2); }},
                    {"steps as graphs, or launch by launch", issued_otherwise}};
  spec.refusals = {starts_on_a_plane()};
  return spec;
}

}  // namespace twinbench::energy_flow::flow_backward

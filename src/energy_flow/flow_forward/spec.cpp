// energy_flow.flow_forward (C16): from embeddings to output surfaces, through all of a batch's flows. Recorded steps
// (C32) are part of it: they compute nothing, their baseline is this one, and what they must match is this optimized
// build in another setting.
#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "src/energy_flow/common/flow_lives.h"
#include "src/energy_flow/common/flow_networks.h"
#include "src/energy_flow/common/flow_statistics.h"
#include "src/energy_flow/common/mapper_parameters.h"
#include "src/inputs.h"
#include "src/spec_parts.h"
#include "src/stored_states.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

Signature signature() {
  const Tolerance run{Tolerance::Kind::kBound, {1e-3, 1e-4}, {6e-2, 3e-2}, "run", {}, {2e-2, 1e-2}};
  Signature s{
      .derived = {{"cells", Expression("height * width")},
                  {"mapper_middle", Expression("2 * cells")},
                  {"mapper_inner", Expression("max(embedding / 2, 2 * cells)")},
                  {"statistics", Expression(std::to_string(std::int64_t{kStatistics}))}},
      .options = life_options(),
      .inputs = {data("embedding", "samples, embedding", from_case(1)).without_gradient(),
                 keys("sample_key", "samples")},
      // margin: of the sample's decision that was the nearest to going another way, in units of 0.5's bounds; at most
      // 1, and 1 in modes that round, where decisions are set aside one by one.
      .outputs = {output("surface", "samples, cells", run).with_nan(),
                  exact_output("stats", "samples, statistics", Element::kInt32),
                  exact_output("active", "samples, max_steps", Element::kInt32), output("margin", "samples", run)},
  };
  add_mapper(s);
  add_networks(s, /*trained=*/false);
  return s;
}

// The worked example's mapper and embedding, beside the weights of all others (0.7).
void use_toy_weights(NamedTensors& inputs, std::int64_t layers) {
  use_toy_networks(inputs, layers);
  use_toy_mapper(inputs);
  const std::vector<float> embedding = {0.5f, -1.0f, 0.25f, 2.0f};
  plant(inputs["embedding"], 1, embedding);
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  draw_sample_keys(inputs, setting, seed);
  if (setting.on("toy")) return use_toy_weights(inputs, setting.size("layers"));
  start_networks(inputs, setting);
  for (std::int64_t b = 1; setting.on("non_finite") && b < setting.size("samples"); b += 2)
    inputs["embedding"][b].fill_(std::numeric_limits<double>::quiet_NaN());
}

// ---- counts of the baseline, by what it says of its flows -----------------------------------------------------------

struct Counts {
  std::int64_t flow_steps = 0, chunk_steps = 0, logged_steps = 0, stop_tests = 0;
  std::int64_t placed = 0, children = 0, collected = 0, cells = 0;
};

Counts counts_of(const NamedTensors& outputs, const Setting& s) {
  const at::Tensor stats = outputs["stats"].cpu().to(at::kLong), active = outputs["active"].cpu().to(at::kLong);
  const auto sum = [&](Statistic column) { return stats.select(1, column).sum().item<std::int64_t>(); };
  const auto chunk = static_cast<std::int64_t>(s.option("baseline_chunk"));
  Counts c;
  const at::Tensor by_step = active.sum(0);
  for (std::int64_t t = 0; t < by_step.numel(); ++t) {
    const auto flows = by_step[t].item<std::int64_t>();
    c.flow_steps += flows;
    c.chunk_steps += (flows + chunk - 1) / chunk;
    c.logged_steps += s.on("step_logging") && flows > 0;
  }
  const std::int64_t samples = s.size("samples");
  c.stop_tests = s.on("convergence_enabled") ? sum(kSteps) + samples : 0;
  c.placed = samples * std::min(s.size("cells"), s.size("quota"));
  c.children = sum(kCreated) - c.placed;
  c.collected = sum(kDoneZ0) + sum(kDoneZD) + sum(kProjectedAge) + sum(kProjectedStop);
  c.cells = sum(kCells);
  return c;
}

std::int64_t reads(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (variant == Variant::kOptimized) return 0;
  const Counts c = counts_of(outputs, s);
  return 8 * c.flow_steps + 5 * c.placed + 4 * c.collected + c.stop_tests + 5 * c.logged_steps;
}

std::int64_t copies(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (variant == Variant::kOptimized) return 0;
  const Counts c = counts_of(outputs, s);
  // In bf16 mode two conversions for every operand: the mapper's three, the neuron's four, of energy and displacement
  // two each; in gate mode the gate's two and the child's.
  const std::int64_t operands = s.option("spawn") == 2 ? 11 : 8;
  const std::int64_t roundings = s.dtype == Dtype::kBf16 ? 3 * s.size("samples") + operands * c.chunk_steps : 0;
  const std::int64_t stored = keeps_bf16(s) ? c.chunk_steps : 0;
  return 6 * c.flow_steps + 3 * c.children + 2 * (roundings + stored);
}

// What the section counts for its form of one operator each (C16).
std::int64_t section_launches(const Counts& c, const Setting& s) {
  const std::int64_t layers = s.size("layers"), noise = s.on("noise") ? 0 : -1, gate = s.option("spawn") == 2 ? 6 : 0;
  return c.chunk_steps * (30 + 3 * layers + noise + gate) + 8 * c.flow_steps + 10 * s.size("samples") + 3 * c.placed +
         5 * c.cells + 5 * c.logged_steps;
}

// ATen's are more: a recurrent layer's gates are eleven operators, its products two (+ 10 a layer); the layers' states
// are joined, a NaN energy replaced, reflection takes four operators (+ 5; + 1 without), noise is added to the move too
// (+ 1); the distance to a plane takes four, the age one (+ 4 a flow-step), the gate joins the length's read (+ 1) and
// a child's energy is divided; fewer in a cell, whose weights the host makes (- 1), and one for the plane of each flow
// that ends there; a log joins the energies and takes their deviation apart (+ 6); surfaces and records of zeros (+ 2).
std::int64_t dispatches(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (variant == Variant::kOptimized) return 0;
  const Counts c = counts_of(outputs, s);
  const std::int64_t noise = s.on("noise") ? 1 : 0, gate = s.option("spawn") == 2 ? 1 : 0;
  const std::int64_t networks = 10 * s.size("layers") + (s.on("boundary") ? 1 : 5) + noise;
  return section_launches(c, s) + c.chunk_steps * networks + c.flow_steps * (4 + gate) + gate * c.children +
         c.collected - c.cells + c.stop_tests + 6 * c.logged_steps + 2;
}

Cost cost(const Setting& s) {
  const auto [samples, embedding, inner, middle, cells] =
      real_sizes<5>(s, {"samples", "embedding", "mapper_inner", "mapper_middle", "cells"});
  const double mapper = embedding * inner + inner * middle + middle * cells;
  return {bytes_of_tensors(s), 2 * (samples * mapper + expected_flow_steps(s) * products_of_flow_step(s))};
}

// ---- what must hold -------------------------------------------------------------------------------------------------

std::string lost_flows(const NamedTensors&, const NamedTensors& outputs, const Setting& s) {
  const at::Tensor stats = outputs["stats"].cpu().to(at::kLong);
  for (std::int64_t b = 0; b < s.size("samples"); ++b) {
    const auto of = [&](std::int64_t column) { return stats[b][column].item<std::int64_t>(); };
    std::int64_t ended = 0;
    for (std::int64_t column = kDoneZ0; column <= kDiedNonFinite; ++column) ended += of(column);
    if (ended != of(kCreated)) return "sample " + std::to_string(b) + ": flows that ended are not those created";
    if (of(kCreated) + of(kDroppedInitial) + of(kDroppedSpawn) != s.size("cells") + of(kRequests))
      return "sample " + std::to_string(b) + ": created and dropped flows are not cells and requests";
    if (of(kCreated) > s.size("quota")) return "sample " + std::to_string(b) + " has more flows than its quota";
  }
  return "";
}

std::string impossible_life(const NamedTensors&, const NamedTensors& outputs, const Setting& s) {
  const at::Tensor stats = outputs["stats"].cpu().to(at::kLong), active = outputs["active"].cpu().to(at::kLong);
  const std::int64_t placed = std::min(s.size("cells"), s.size("quota"));
  for (std::int64_t b = 0; b < s.size("samples"); ++b) {
    const auto steps = stats[b][kSteps].item<std::int64_t>(), reason = stats[b][kReason].item<std::int64_t>();
    if (reason < 1 || reason > 4 || steps > s.size("max_steps")) return "a sample stops for no reason";
    for (std::int64_t t = 0; t < s.size("max_steps"); ++t) {
      const auto count = active[b][t].item<std::int64_t>();
      if ((count > 0) != (t < steps)) return "a step was executed without a flow, or not at all";
      if (t == 0 && steps > 0 && count != placed) return "the first step has not the flows that were placed";
    }
  }
  return "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.ambiguous = within_margin;
  // For whoever has no outputs.
  const auto at_most = [](const Setting& s) { return most_flow_steps(s) * (46 + 13 * s.size("layers")); };
  spec.proof = {{"scalar_reads", "", {}, {}, reads},
                {"copies", "", {}, {}, copies},
                {"dispatches", "", at_most, nothing, dispatches}};
  spec.cost = cost;
  // The specification's, for as many steps as can be issued.
  spec.most_launches = [](const Setting& s) { return s.size("max_steps") * (8 + 3 * s.size("layers")) + 15; };
  spec.invariants = {{"no flow is lost or made up", lost_flows},
                     {"steps are executed for live flows", impossible_life}};
  spec.relations = {
      {"live flows are never moved together", [](Setting s) { return with_option(s, "memory_cleanup_interval", 0); }},
      {"steps as graphs, or launch by launch", issued_otherwise}};
  spec.refusals = {starts_on_a_plane()};
  return spec;
}

}  // namespace twinbench::energy_flow::flow_forward

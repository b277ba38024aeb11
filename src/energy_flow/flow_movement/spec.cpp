// energy_flow.flow_movement (C10): moves every live flow, ends those that the rules end, counts what became of each.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "src/energy_flow/common/flow_samples.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::flow_movement {
namespace {

Signature signature() {
  // Raw positions are given: every comparison is exact in any precision, so no flow lies within a decision margin, and
  // status, age and counts are compared bit for bit. Margins are a matter of whoever computes raw (C08).
  const Tolerance elementwise{Tolerance::Kind::kBound, {2e-6, 2e-6}, {2e-6, 2e-6}, "elementwise"};
  return {
      .options = {choice_option("boundary", {"reflect", "kill"}, "reflect",
                                "boundary_mode: what happens to a flow that leaves the lattice in x or y"),
                  choice_option("on_stop", {"project", "drop"}, "project",
                                "what becomes of the active flows of a sample that has stopped")},
      .inputs = {data("raw", "flows, 3", from_case(1, 0.8)), data("position", "flows, 3", uniform(2, -1, 1)),
                 data("energy", "flows", uniform(3, -1, 1)), data("next_energy", "flows", uniform(4, -1, 1)),
                 keys("age", "flows").of(Element::kInt32), keys("sample", "flows").of(Element::kInt32),
                 keys("stopped", "samples").of(Element::kBool).batch(std::nullopt)},
      .outputs = {output("new_position", "flows, 3", elementwise).with_gradient(8),
                  exact_output("new_energy", "flows").with_nan().with_gradient(9),
                  exact_output("new_age", "flows", Element::kInt32), exact_output("status", "flows", Element::kByte),
                  output("distance", "flows", elementwise),
                  exact_output("counts", "samples, 8", Element::kInt32).batch(std::nullopt)},
      .gradient = {Tolerance::Kind::kGradient, {1e-4, 0}, {5e-2, 0}, "grad"},
  };
}

// Borders and their neighbours, one and two folds away; a quarter of them in each place of a row.
void plant_borders(const at::Tensor& raw) {
  const auto above = [](float a) { return std::nextafter(a, 10.0f); };
  const auto below = [](float a) { return std::nextafter(a, -10.0f); };
  const std::vector<float> borders = {1.0f,    -1.0f, above(1.0f), below(1.0f), above(-1.0f), below(-1.0f),
                                      0.0f,    -0.0f, 3.0f,        -3.0f,       above(3.0f),  below(-3.0f),
                                      0.25f,   -0.5f, 1e-30f,      3.2f,        -5.0f,        1.5f,
                                      -1e-30f, 0.75f, 1.143585f,   -1.397388f,  0.1f};
  plant(raw, 1, borders);  // 23 values: a row's three are others in every row
}

constexpr std::int32_t kBeyondTwoBytes = 1 << 16;  // an age that is cut to one or two bytes is a young one

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  const std::int64_t flows = setting.size("flows"), samples = setting.size("samples");
  auto* const age = inputs["age"].mutable_data_ptr<std::int32_t>();
  auto* const sample = inputs["sample"].mutable_data_ptr<std::int32_t>();
  auto* const stopped = inputs["stopped"].mutable_data_ptr<bool>();
  for (std::int64_t f = 0; f < flows; ++f) {
    age[f] = static_cast<std::int32_t>(f * 7 % 5) + (f % 11 == 10 ? kBeyondTwoBytes : 0);
    sample[f] = static_cast<std::int32_t>(setting.on("shuffled") ? f * 31 % samples : f * samples / flows);
  }
  for (std::int64_t s = 0; s < samples; ++s) stopped[s] = setting.on("stopping") && s % 3 == 1;
  if (setting.on("borders")) plant_borders(inputs["raw"]);
  constexpr double kBad[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()};
  for (std::int64_t f = 0; setting.on("non_finite") && f < flows; f += 3) {
    inputs["raw"][f][f / 3 % 3].fill_(kBad[f / 9 % 3]);
    if (f % 2 == 0) inputs["next_energy"][f / 2].fill_(kBad[f % 3]);
  }
}

// Flows of samples that have stopped move no more.
std::int64_t stopped_flows(const Setting& s) {
  const std::int64_t flows = s.size("flows"), samples = s.size("samples");
  std::int64_t count = 0;
  for (std::int64_t f = 0; s.on("stopping") && f < flows; ++f)
    count += (s.on("shuffled") ? f * 31 % samples : f * samples / flows) % 3 == 1;
  return count;
}

std::int64_t baseline_reads(const Setting& s) { return 8 * (s.size("flows") - stopped_flows(s)); }

// Every flow that moves: 14 operators before the eight reads, one for its age, four to reflect it, two for its depth.
// One that a stop projects: six.
std::int64_t forward_dispatches(const Setting& s) {
  const std::int64_t stopped = stopped_flows(s), moving = s.size("flows") - stopped;
  return moving * (s.on("boundary") ? 17 : 21) + (s.on("on_stop") ? 0 : 6) * stopped;
}
// Backward adds the tape's replay: of a flow that is left its depth, and 14 for its reflection; zeros for every flow
// that does not reach an input; and a join for each input that any flow reaches, else its zeros.
std::int64_t dispatches(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (variant == Variant::kOptimized) return 0;
  if (!s.backward()) return forward_dispatches(s);
  const std::int64_t flows = s.size("flows");
  const std::int64_t moved = outputs["grad_next_energy"].count_nonzero().item<std::int64_t>();
  const std::int64_t rested = outputs["grad_energy"].count_nonzero().item<std::int64_t>();
  const auto joined = [&](std::int64_t reached) { return reached > 0 ? 2 + 2 * (flows - reached) : 2; };
  if (moved + rested == 0) return forward_dispatches(s);
  return forward_dispatches(s) + moved * (s.on("boundary") ? 1 : 15) + rested + joined(moved) + joined(rested);
}

Cost cost(const Setting& s) {
  const auto [flows, samples] = real_sizes<2>(s, {"flows", "samples"});
  // Forward: raw or the position before, an energy, age and sample; written position, energy, age, distance and status.
  // Backward: raw, age and sample, two gradients; written four.
  const double bytes = s.backward() ? 36 + 32 : 24 + 25;
  return {flows * bytes + samples * (s.backward() ? 1 : 33), flows * (s.backward() ? 2 : 4)};
}

// Every flow is counted once, for its own sample, and what its status says is what its place and distance show.
std::string broken_counts(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& s) {
  if (s.backward()) return "";
  const at::Tensor counts = outputs["counts"].cpu().to(at::kLong);
  const at::Tensor ones = at::ones({s.size("flows")}, at::kLong);
  const at::Tensor due =
      at::zeros({s.size("samples")}, at::kLong).index_add_(0, inputs["sample"].cpu().to(at::kLong), ones);
  if (!counts.sum(1).equal(due)) return "the counts of a sample do not add up to its flows";
  return "";
}
std::string out_of_range(const NamedTensors&, const NamedTensors& outputs, const Setting& s) {
  if (s.backward() || s.size("flows") == 0) return "";
  const at::Tensor place = outputs["new_position"].cpu(), status = outputs["status"].cpu();
  const at::Tensor distance = outputs["distance"].cpu(), z = place.select(1, 2);
  if (!(place.abs().max().item<double>() <= 1)) return "a flow is outside the lattice, or at NaN";
  if (status.eq(1).logical_and(z.abs().ge(1)).any().item<bool>()) return "an active flow is on a plane";
  if (status.eq(2).logical_and(z.ne(-1)).any().item<bool>()) return "a flow done on z0 is not there";
  if (status.eq(3).logical_and(z.ne(1)).any().item<bool>()) return "a flow done on zD is not there";
  if (status.eq(1).logical_and(distance.ne(0)).any().item<bool>()) return "an active flow has a distance";
  return distance.lt(0).logical_or(distance.gt(1)).any().item<bool>() ? "a distance is outside 0 .. 1" : "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting& setting) {
    check_samples(inputs["sample"], setting.size("samples"));
  };
  spec.proof = {{"scalar_reads", "", baseline_reads, nothing},
                {"dispatches", "", forward_dispatches, nothing, dispatches}};
  spec.cost = cost;
  spec.most_launches = [](const Setting&) { return 1; };
  spec.invariants = {{"every flow is counted", broken_counts}, {"places", out_of_range}};
  spec.refusals = {{"a sample that is not there",
                    [](NamedTensors& inputs, Setting& setting) { inputs["sample"][0].fill_(setting.size("samples")); },
                    ErrorKind::kOutOfRange, "sample"},
                   {"a negative sample", [](NamedTensors& inputs, Setting&) { inputs["sample"][0].fill_(-1); },
                    ErrorKind::kOutOfRange, "sample"}};
  return spec;
}

}  // namespace twinbench::energy_flow::flow_movement

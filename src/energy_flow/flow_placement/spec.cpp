// energy_flow.flow_placement (C09): one flow for each admitted cell of each sample's surface.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "src/draws.h"
#include "src/energy_flow/common/flow_lives.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::flow_placement {
namespace {

// Age 0, state active and a hidden state that reads as zeros are the same for every new flow: the storage's defaults.
Signature signature() {
  OutputSpec sample = exact_output("sample", "samples * placed", Element::kInt32).batch(std::nullopt);
  return {
      .derived = {{"cells", Expression("height * width")}, {"placed", Expression("min(height * width, quota)")}},
      .inputs = {data("surface", "samples, height, width", from_case(1)), keys("sample_key", "samples")},
      .outputs = {exact_output("position", "samples * placed, 3"),
                  exact_output("energy", "samples * placed").with_nan().with_gradient(8), sample,
                  exact_output("local_id", "samples * placed", Element::kInt32),
                  exact_output("uid", "samples * placed", Element::kInt64),
                  exact_output("dropped", "1", Element::kInt64).batch(std::nullopt)},
      .gradient = {Tolerance::Kind::kGradient, {1e-4, 0}, {5e-2, 0}, "grad"},
  };
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  draw_sample_keys(inputs, setting, seed);
  const std::vector<float> bad = {std::numeric_limits<float>::quiet_NaN(), 0.5f, std::numeric_limits<float>::infinity(),
                                  -0.25f, -std::numeric_limits<float>::infinity()};
  if (setting.on("non_finite")) plant(inputs["surface"], 3, bad);
}

std::int64_t flows(const Setting& s) { return s.size("samples") * s.size("placed"); }

// The tape's zeros for every cell without a flow, and one join.
std::int64_t replay(const Setting& s) {
  return s.backward() && flows(s) > 0 ? s.size("samples") * (s.size("cells") - s.size("placed")) + 1 : 0;
}

Cost cost(const Setting& s) {
  const auto [samples, placed, cells] = real_sizes<3>(s, {"samples", "placed", "cells"});
  // Forward: an energy read, and written with place, sample, number and uid. Backward: a gradient for every cell.
  if (s.backward()) return {4 * samples * (placed + cells), 0};
  return {samples * (placed * (4 + 12 + 4 + 4 + 4 + 8) + 8), 6 * samples * placed};
}

std::string misplaced(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& s) {
  if (s.backward() || flows(s) == 0) return "";
  const std::int64_t placed = s.size("placed");
  const at::Tensor uid = outputs["uid"].cpu().view({-1, placed}), local = outputs["local_id"].cpu().view({-1, placed});
  if (!local.eq(at::arange(placed, at::kInt)).all().item<bool>()) return "a sample's flows are not numbered from 0";
  if (!uid.bitwise_right_shift(32)
           .bitwise_and(0xffffffff)
           .eq(inputs["sample_key"].cpu().unsqueeze(1))
           .all()
           .item<bool>())
    return "a flow's uid does not hold its sample's key";
  const at::Tensor place = outputs["position"].cpu();
  if (place.abs().max().item<double>() > 1) return "a flow starts outside the lattice";
  const std::int64_t dropped = s.size("samples") * (s.size("cells") - placed);
  return outputs["dropped"].item<std::int64_t>() == dropped ? "" : "the dropped flows are miscounted";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.proof = {{"scalar_reads", "", [](const Setting& s) { return 5 * flows(s); }, nothing},
                {"allocations", "", [](const Setting& s) { return 3 * flows(s) + replay(s); }, nothing},
                {"dispatches", "", [](const Setting& s) { return flows(s) + replay(s); }, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting&) { return 2; };
  spec.invariants = {{"places and numbers", misplaced}};
  const auto one_wide = [](std::int64_t axis, const char* size) {
    return [axis, size](NamedTensors& inputs, Setting& setting) {
      setting.input_case.sizes.erase(size);
      inputs.set("surface", inputs["surface"].narrow(axis, 0, 1).contiguous());
    };
  };
  spec.refusals = {
      {"a lattice one cell wide", one_wide(2, "width"), ErrorKind::kOutOfRange, "surface"},
      {"a lattice one cell high", one_wide(1, "height"), ErrorKind::kOutOfRange, "surface"},
      {"an output plane as start", [](NamedTensors&, Setting& setting) { setting.input_case.options["depth"] = 1; },
       ErrorKind::kOutOfRange, "depth"}};
  return spec;
}

}  // namespace twinbench::energy_flow::flow_placement

// energy_flow.surface_collection (C11): the energies of completed flows, averaged by cell into a sample's surface.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "src/spec_parts.h"

namespace twinbench::energy_flow::surface_collection {
namespace {

Signature signature() {
  const Tolerance mean{Tolerance::Kind::kBound, {1e-5, 2e-6}, {1e-5, 2e-6}, "C11"};
  const auto given = [](InputSpec input) { return input.without_gradient(); };
  return {
      .derived = {{"cells", Expression("width * height")}},
      .inputs = {data("energy", "batch, slots", from_case(1, 0.5)).clamped(-1.25, 1.25),
                 given(data("position", "batch, 3, slots", uniform(2, -1, 1))),
                 given(data("distance", "batch, slots", uniform(3, 0, 1))),
                 keys("age", "batch, slots").of(Element::kInt32), keys("status", "batch, slots").of(Element::kByte),
                 keys("forward_id", "batch, slots").of(Element::kInt32)},
      .outputs = {output("surface", "batch, cells", mean).with_nan().with_gradient(4),
                  exact_output("cell", "batch, slots", Element::kInt32)},
  };
}

// What becomes of a slot, the same for every seed.
enum class Fate { kCollected, kUnfinished, kStale };
Fate fate_of(const Setting& setting, std::int64_t slot) {
  const auto every = [&](const char* option, std::int64_t place) {
    const auto n = static_cast<std::int64_t>(setting.option(option));
    return n > 0 && slot % n == place % n;
  };
  if (every("unfinished_every", 2)) return Fate::kUnfinished;
  return every("stale_every", 1) ? Fate::kStale : Fate::kCollected;
}

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

// Where a flow ends: a cell, with `ties` half a column further on. Seeds turn the surface, so that as many cells are
// reached with each.
struct Place {
  std::int64_t column, row;
};
Place place_of(const Setting& setting, std::int64_t sample, std::int64_t slot, std::uint64_t seed) {
  const std::int64_t width = setting.size("width"), cells = setting.size("cells");
  const std::uint64_t number = mixed(static_cast<std::uint64_t>(sample) << 32 | static_cast<std::uint64_t>(slot));
  if (setting.on("ties")) {
    const auto columns = static_cast<std::uint64_t>(width - 1),
               rows = static_cast<std::uint64_t>(setting.size("height"));
    return {static_cast<std::int64_t>(number % columns), static_cast<std::int64_t>(number / columns % rows)};
  }
  const auto reached = static_cast<std::int64_t>(setting.option("cells_reached"));
  const auto all = static_cast<std::uint64_t>(cells), among = static_cast<std::uint64_t>(std::min(reached, cells));
  const auto cell = static_cast<std::int64_t>((number % (reached > 0 ? among : all) + mixed(seed) % all) % all);
  return {cell % width, cell / width};
}

std::int64_t count_of(const Setting& setting, Fate fate) {
  std::int64_t count = 0;
  for (std::int64_t slot = 0; slot < setting.size("slots"); ++slot) count += fate_of(setting, slot) == fate;
  return count * setting.size("batch");
}

// Cells with a flow.
std::int64_t groups(const Setting& setting) {
  const std::int64_t cells = setting.size("cells"), width = setting.size("width");
  std::set<std::int64_t> reached;
  for (std::int64_t sample = 0; sample < setting.size("batch"); ++sample)
    for (std::int64_t slot = 0; slot < setting.size("slots"); ++slot) {
      if (fate_of(setting, slot) != Fate::kCollected) continue;
      const Place at = place_of(setting, sample, slot, 0);
      const std::int64_t column = setting.on("ties") ? (at.column + 1) / 2 * 2 : at.column;  // half way: the even one
      reached.insert(sample * cells + at.row * width + column);
    }
  return static_cast<std::int64_t>(reached.size());
}

// The coordinate of a place on an axis, up to 0.4 cells off: no rounding can take it to another cell.
float coordinate(double place, double jitter, std::int64_t extent) {
  return static_cast<float>(std::clamp(2 * (place + 0.4 * jitter) / static_cast<double>(extent - 1) - 1, -1.0, 1.0));
}

struct Rows {
  float *energy, *position, *distance;
  std::int32_t *age, *forward_id;
  std::uint8_t* status;
};

void finish_slot(const Setting& setting, std::int64_t sample, std::int64_t slot, std::uint64_t seed, const Rows& rows) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::int64_t slots = setting.size("slots"), entry = sample * slots + slot;
  float *const x = rows.position + 3 * sample * slots + slot, *const y = x + slots, *const z = y + slots;
  const Place at = place_of(setting, sample, slot, seed);
  *x = setting.on("ties") ? coordinate(static_cast<double>(at.column) + 0.5, 0, setting.size("width"))
                          : coordinate(static_cast<double>(at.column), *x, setting.size("width"));
  *y = coordinate(static_cast<double>(at.row), *y, setting.size("height"));
  const Fate fate = fate_of(setting, slot);
  const auto forward = static_cast<std::int32_t>(setting.option("forward"));
  rows.age[entry] = static_cast<std::int32_t>(mixed(seed + static_cast<std::uint64_t>(entry)) % 51);
  rows.forward_id[entry] = fate == Fate::kStale ? std::max(forward - 1, 0) : forward;
  rows.status[entry] = *z < 0 ? 2 : 3;
  if (slot % 2 == 0) rows.distance[entry] = 0;  // it crossed the plane; others were projected
  *z = *z < 0 ? -1 : 1;
  if (fate == Fate::kUnfinished) {
    constexpr std::uint8_t kOther[] = {0, 1, 4};  // free, active, dead
    rows.status[entry] = kOther[entry % 3];
    rows.energy[entry] = rows.distance[entry] = *x = *y = *z = kNan;
  }
  constexpr float kOdd[] = {kNan, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  if (setting.on("non_finite") && entry % 17 == 3) rows.energy[entry] = kOdd[entry / 17 % 3];
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  const auto floats = [&](const char* name) { return inputs[name].mutable_data_ptr<float>(); };
  const auto whole = [&](const char* name) { return inputs[name].mutable_data_ptr<std::int32_t>(); };
  const Rows rows{floats("energy"), floats("position"),  floats("distance"),
                  whole("age"),     whole("forward_id"), inputs["status"].mutable_data_ptr<std::uint8_t>()};
  for (std::int64_t sample = 0; sample < setting.size("batch"); ++sample)
    for (std::int64_t slot = 0; slot < setting.size("slots"); ++slot) finish_slot(setting, sample, slot, seed, rows);
}

// Four a completed flow, however the surface is differentiated.
std::int64_t baseline_reads(const Setting& setting) {
  return 4 * count_of(setting, Fate::kCollected) + (setting.on("stale_scan") ? count_of(setting, Fate::kStale) : 0);
}

// Forward, a cell: energies stacked, softmax, weighted sum; the surface's zeros once. Backward: five, for the weights
// are computed of the energies there, and seven of the tape's replay; zeros for each flow that takes no part, and all
// flows' gradients joined.
std::int64_t baseline_dispatches(const Setting& setting) {
  if (!setting.backward()) return 3 * groups(setting) + 1;
  const std::int64_t apart = count_of(setting, Fate::kUnfinished) + count_of(setting, Fate::kStale);
  return groups(setting) == 0 ? 0 : 12 * groups(setting) + apart + 1;
}
std::int64_t baseline_copies(const Setting& setting) { return setting.backward() ? 0 : groups(setting); }

// An entry: energy, two coordinates, distance, age and forward in four bytes each, the status in one; its cell or its
// gradient. Every cell's surface or gradient.
Cost cost(const Setting& setting) {
  const auto [batch, cells, slots] = real_sizes<3>(setting, {"batch", "cells", "slots"});
  // Of a surface's gradient, the cells that a flow ends in.
  const double surface = setting.backward() ? std::min(cells, slots) : cells;
  return {batch * (29 * slots + 4 * surface), 4 * batch * slots};
}

// No mean lies outside its energies' range; a cell is empty exactly where no flow ends.
std::string unbalanced(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const at::Tensor surface = outputs["surface"].cpu().to(at::kDouble).contiguous(),
                   energy = inputs["energy"].cpu().to(at::kDouble).contiguous(),
                   cell = outputs["cell"].cpu().contiguous();
  const std::int64_t batch = setting.size("batch"), cells = setting.size("cells"), slots = setting.size("slots");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, double>> range(static_cast<std::size_t>(batch * cells), {kInfinity, -kInfinity});
  for (std::int64_t entry = 0; entry < batch * slots; ++entry) {
    const std::int32_t at = cell.const_data_ptr<std::int32_t>()[entry];
    if (at < -1 || at >= cells) return "flow " + std::to_string(entry) + " is in cell " + std::to_string(at);
    if (at < 0) continue;
    const double value = energy.const_data_ptr<double>()[entry];
    auto& [least, most] = range[static_cast<std::size_t>(entry / slots * cells + at)];
    least = std::isfinite(value) ? std::min(least, value) : -kInfinity;
    most = std::isfinite(value) ? std::max(most, value) : kInfinity;
  }
  for (std::int64_t i = 0; i < batch * cells; ++i) {
    const auto [least, most] = range[static_cast<std::size_t>(i)];
    const double value = surface.const_data_ptr<double>()[i];
    if (least > most && value != 0) return "the empty cell " + std::to_string(i) + " has an energy";
    if (least > most || !std::isfinite(least) || !std::isfinite(most)) continue;
    if (!(value >= least - 1e-6 && value <= most + 1e-6))
      return "cell " + std::to_string(i) + " lies outside the energies of its flows";
  }
  return "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.proof = {{"scalar_reads", "", baseline_reads, nothing},
                {"dispatches", "", baseline_dispatches, nothing},
                {"copies", "", baseline_copies, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting& setting) { return setting.on("atomic_maximum") ? 4 : 1; };
  spec.invariants = {{"means lie among their energies, empty cells are 0", unbalanced}};
  return spec;
}

}  // namespace twinbench::energy_flow::surface_collection

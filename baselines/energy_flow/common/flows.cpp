// Placement, reads and rules of single flows.
#include "baselines/energy_flow/common/flows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/common/error.h"
#include "src/rounding.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

constexpr double kFarAway = std::numeric_limits<double>::infinity();  // of a decision that no rounding takes

// In fp32 in this order, in every mode: multiply, divide, subtract.
float normalized(std::int64_t index, std::int64_t last) {
  return 2.0f * static_cast<float>(index) / static_cast<float>(last) - 1.0f;
}

}  // namespace

Grid::Grid(const Setting& setting, const at::TensorOptions& options) {
  const std::int64_t width = setting.size("width"), height = setting.size("height"), cells = width * height;
  const auto depth = static_cast<std::int64_t>(setting.option("depth"));
  width_ = width;
  start_depth_ = normalized(depth / 2, depth);
  const at::Tensor place = at::empty({cells, 3}, at::kFloat);
  for (std::int64_t s = 0; s < cells; ++s) {
    float* const to = place.mutable_data_ptr<float>() + 3 * s;
    to[0] = normalized(s % width, width - 1), to[1] = normalized(s / width, height - 1);
    to[2] = static_cast<float>(start_depth_);
  }
  place_ = place.to(options).unbind(0);
  const at::Tensor cell = at::arange(cells, options.dtype(at::kLong)), level = at::full_like(cell, depth / 2);
  x_ = cell.remainder(width).unbind(0), y_ = cell.floor_divide(width).unbind(0);
  batch_ = at::zeros_like(cell).unbind(0);
  on_z0_ = level.le(depth - level).unbind(0), distance_ = at::minimum(level, depth - level).unbind(0);
  age_ = at::zeros({}, options.dtype(at::kInt));
}

Flow Grid::placed(std::int64_t s, const at::Tensor& cells, std::int64_t layers, std::int64_t hidden) const {
  const auto at = static_cast<std::size_t>(s);
  const auto x = x_[at].item<std::int64_t>(), y = y_[at].item<std::int64_t>();
  (void)batch_[at].item<std::int64_t>(), (void)on_z0_[at].item<bool>(), (void)distance_[at].item<std::int64_t>();
  return {.position = at::add(place_[at], 0),
          .energy = at::add(cells.narrow(0, s, 1), 0),
          .hidden = at::zeros({layers, hidden}, cells.options()),
          .age = age_,
          .local_id = y * width_ + x};
}

Readings read(const Flow& flow, const Moves& moves, std::int64_t i, const HostRules& rules) {
  const at::Tensor raw = moves.raw.select(0, i), z = raw.select(0, 2);
  at::Tensor measure = at::linalg_vector_norm(moves.move.select(0, i));
  if (rules.spawn == 2) measure = at::add(moves.gate.select(0, i).select(0, 0), measure, 0);  // NaN where raw has one
  Readings r{};
  r.live = flow.age.ge(0).item<bool>();
  r.at_z0 = z.le(-1).item<bool>();
  r.at_zd = z.ge(1).item<bool>();
  r.x = raw.select(0, 0).abs().item<double>();
  r.y = raw.select(0, 1).abs().item<double>();
  r.aged = flow.age.ge(rules.projection_age - 1).item<bool>();
  r.measure = measure.item<double>();
  r.nearer = at::where(z.le(0), z.add(1), z.sub(1)).item<double>();
  return r;
}

void scatter(Flow& flow, const Moves& moves, std::int64_t i, bool kill) {
  flow.position = (kill ? moves.raw : moves.folded).select(0, i).clone();
  flow.energy = moves.energy.select(0, i).clone();
  flow.hidden = moves.hidden.select(0, i).clone();
  flow.age = at::add(flow.age, 1);
  ++flow.steps;
}

std::int64_t settle(Flow& flow, const Readings& readings, const HostRules& rules, Book& book) {
  const auto end = [&](Fate fate, Statistic column) {
    flow.fate = fate;
    ++book.stats[column];
    --book.active;
    return std::int64_t{0};
  };
  if (!readings.live)
    throw Error(ErrorKind::kInternal, "flow", std::to_string(flow.local_id), "the map holds live flows only");
  const bool finite = std::isfinite(readings.measure);
  if (!decided(finite, finite, kFarAway)) return end(Fate::kGone, kDiedNonFinite);
  book.note(readings.nearer);
  if (rules.kill) {
    book.note(readings.x - 1), book.note(readings.y - 1);
    const double farther = std::max(readings.x, readings.y);
    if (decided(farther > 1, !(farther > 1), std::abs(farther - 1))) return end(Fate::kGone, kDiedBounds);
  }
  const bool due = rules.projection_age > 0 && readings.aged;
  // -1 and 1: on the lower, on the upper plane. Which one a due flow is nearer to shows in no output.
  const int reached = readings.at_z0 ? -1 : readings.at_zd ? 1 : 0, side = readings.nearer > 0 ? -1 : 1;
  const std::int64_t plane = decided(reached, reached != 0 ? 0 : side, std::abs(readings.nearer));
  if (plane != 0 || due) flow.position.select(0, 2).fill_(plane != 0 ? static_cast<int>(plane) : side);
  if (plane != 0) return end(Fate::kDone, plane < 0 ? kDoneZ0 : kDoneZD);
  if (due) {
    flow.distance = std::abs(readings.nearer);
    book.note(1 - flow.distance);
    return end(Fate::kByAge, kProjectedAge);
  }
  const double margin = rules.spawn_margin(readings.measure);
  book.note(margin);
  return decided(rules.children(readings.measure), rules.children_beyond(readings.measure), margin);
}

}  // namespace twinbench::energy_flow::flow_forward

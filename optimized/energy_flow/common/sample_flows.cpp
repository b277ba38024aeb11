// The life of one sample's flows.
#include "optimized/energy_flow/common/sample_flows.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "kernels/energy_flow/common/heads.h"
#include "kernels/energy_flow/common/margins.h"
#include "optimized/common/tensors.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

std::int64_t tiles_of(const Rules& rules) { return (rules.most_flows() + kLanes - 1) / kLanes; }

constexpr surface_collection::Cell kEmpty{-INFINITY, 0, 0, 0};

}  // namespace

SampleFlows::Field::Field(std::int64_t tiles, std::int64_t count)
    : values(at::zeros({tiles * count * kLanes}, at::kFloat)), start(data<float>(values)), channels(count) {}

void SampleFlows::Field::move(std::int64_t from, std::int64_t to) const {
  for (std::int64_t c = 0; c < channels; ++c) at(to, c) = at(from, c);
}

SampleFlows::SampleFlows(const Rules& rules, const TileNetworks& networks, std::int64_t hidden_floats)
    : rules_(rules),
      networks_(networks),
      position_(tiles_of(rules), 3),
      before_(tiles_of(rules), 3),
      energy_(tiles_of(rules), 1),
      child_energy_(tiles_of(rules), 1),
      hidden_(tiles_of(rules), hidden_floats, networks.stores_bf16()),
      ended_(static_cast<std::size_t>(rules.most_flows())),
      cells_(static_cast<std::size_t>(rules.cells()), kEmpty) {
  const auto places = static_cast<std::size_t>(tiles_of(rules) * kLanes);
  for (auto* of : {&status_, &age_, &number_, &parent_, &outcome_, &requests_}) of->assign(places, 0);
  for (auto* of : {&distance_, &near_}) of->assign(places, 0);
}

void SampleFlows::place(const float* surface) {
  const std::int32_t placed = rules_.placed();
  span_ = active_ = placed;
  ended_count_ = 0, margin_ = 1, stop_ = {}, stats_ = {};
  stats_[kCreated] = placed;
  stats_[kDroppedInitial] = rules_.cells() - placed;
  std::fill(status_.begin(), status_.end(), 0);
  hidden_.clear(tiles());
  for (std::int32_t s = 0; s < placed; ++s) {
    position_.at(s, 0) = flow_placement::normalized(s % rules_.width, rules_.width - 1);
    position_.at(s, 1) = flow_placement::normalized(s / rules_.width, rules_.height - 1);
    position_.at(s, 2) = rules_.start_depth;
    energy_.at(s) = surface[s];
    const auto at = static_cast<std::size_t>(s);
    status_[at] = flow_movement::kActive, age_[at] = 0, number_[at] = s;
  }
}

void SampleFlows::look(std::int32_t t) {
  const std::int32_t completed = stats_[kDoneZ0] + stats_[kDoneZD] + stats_[kProjectedAge];
  stop_ = decided(rules_.stop, t, stop_, {.completed = completed, .created = stats_[kCreated], .active = active_});
  if (!finished()) return;
  stats_[kSteps] = stop_.steps;
  stats_[kReason] = static_cast<std::int32_t>(stop_.reason);
  for (std::int64_t slot = 0; slot < span_; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (status_[at] != flow_movement::kActive) continue;
    const float z = position_.at(slot, 2);
    // A flow that has never moved is where it was placed, exactly.
    if (!rules_.movement.drop && z != rules_.start_depth) note(std::abs(z));
    end(slot, flow_movement::moved(rules_.movement, true, position_.at(slot, 0), position_.at(slot, 1), z,
                                   energy_.at(slot), age_[at]));
  }
}

void SampleFlows::end(std::int64_t slot, const flow_movement::Flow<float>& flow) {
  status_[static_cast<std::size_t>(slot)] = 0;
  --active_;
  ++stats_[static_cast<std::size_t>(flow.outcome)];
  if (flow.status == flow_movement::kDoneZ0 || flow.status == flow_movement::kDoneZD)
    ended_[static_cast<std::size_t>(ended_count_++)] = {.x = flow.x,
                                                        .y = flow.y,
                                                        .energy = flow.energy,
                                                        .distance = flow.distance,
                                                        .age = flow.age,
                                                        .number = number_[static_cast<std::size_t>(slot)]};
}

std::uint32_t SampleFlows::live_lanes(std::int64_t tile) const {
  const std::int32_t* const status = status_.data() + tile * kLanes;
  std::uint32_t lanes = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    lanes |= static_cast<std::uint32_t>(status[lane] == flow_movement::kActive) << lane;
  return lanes;
}

void SampleFlows::keep_state(const TileStep& step) const {
  std::copy_n(energy_.tile(step.tile), kLanes, std::copy_n(position_.tile(step.tile), 3 * kLanes, step.state));
  hidden_.keep(step.tile, step.hidden);
}

void SampleFlows::keep_before(const TileStep& step) const {
  keep_state(step);
  std::fill_n(step.replayed, 2 * kLanes, 0.0f);
  std::fill_n(step.replayed + 2 * kLanes, kLanes, 1.0f);
}

void SampleFlows::keep_after(std::int64_t slot, const carrier_heads::Results<float>& to, const TileStep& step) const {
  const auto slope = [&](float raw) { return rules_.movement.kill ? 1.0f : flow_movement::reflected_slope(raw); };
  float* const of = step.replayed + slot % kLanes;
  of[0] = slope(to.raw.x);
  of[kLanes] = slope(to.raw.y);
  of[2 * kLanes] = static_cast<float>(requests_[static_cast<std::size_t>(slot)] + 1);
}

void SampleFlows::advance(std::int64_t tile, std::int32_t t, std::uint32_t sample_key, float* scratch,
                          const TileStep* step) {
  const std::int64_t first = tile * kLanes;
  const std::int32_t* const status = status_.data() + first;
  if (std::find(status, status + kLanes, flow_movement::kActive) == status + kLanes) return;
  TileIntent intent;
  if (step != nullptr) keep_before(*step);
  float* const hidden = hidden_.open(tile, networks_.opened_states(scratch));
  networks_.advance(position_.tile(tile), energy_.tile(tile), hidden, scratch, intent,
                    step != nullptr ? step->kept : TileKept{});
  hidden_.close(tile, hidden);
  carrier_heads::Rule<float> rule = networks_.parameters().heads_rule;
  rule.key.step = static_cast<std::uint32_t>(t);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (status[lane] != flow_movement::kActive) continue;
    const std::int64_t slot = first + lane;
    const auto at = static_cast<std::size_t>(slot);
    const carrier_heads::Sums<float> sums = {
        .energy = intent.energy[lane],
        .displacement = {intent.displacement[lane], intent.displacement[kLanes + lane],
                         intent.displacement[2 * kLanes + lane]},
        .gate = intent.gate[lane],
        .child = intent.child[lane]};
    const carrier_heads::Results<float> to =
        carrier_heads::finish(rule, sums, {position_.at(slot, 0), position_.at(slot, 1), position_.at(slot, 2)},
                              sample_key, static_cast<std::uint32_t>(number_[at]));
    const flow_movement::Flow<float> flow =
        flow_movement::moved(rules_.movement, false, to.raw.x, to.raw.y, to.raw.z, to.energy, age_[at]);
    before_.at(slot, 0) = position_.at(slot, 0);
    before_.at(slot, 1) = position_.at(slot, 1);
    before_.at(slot, 2) = position_.at(slot, 2);
    position_.at(slot, 0) = flow.x;
    position_.at(slot, 1) = flow.y;
    position_.at(slot, 2) = flow.z;
    energy_.at(slot) = flow.energy;
    child_energy_.at(slot) = to.child_energy;
    age_[at] = flow.age;
    outcome_[at] = flow.outcome;
    distance_[at] = flow.distance;
    requests_[at] = flow.outcome == flow_movement::kStaysActive ? to.spawn_count : 0;
    near_[at] = step_margin(rules_.movement, rule, to, flow.outcome);
    if (step != nullptr) keep_after(slot, to, *step);
  }
}

void SampleFlows::settle(std::int32_t t) {
  const std::int64_t before = span_;
  for (std::int64_t slot = 0; slot < before; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (status_[at] != flow_movement::kActive) continue;
    note(near_[at]);
    if (outcome_[at] != flow_movement::kStaysActive) {
      const bool gone = outcome_[at] == flow_movement::kDiedOfBounds || outcome_[at] == flow_movement::kDiedNonFinite;
      end(slot, {.x = position_.at(slot, 0),
                 .y = position_.at(slot, 1),
                 .z = 0,
                 .energy = energy_.at(slot),
                 .distance = distance_[at],
                 .age = age_[at],
                 .status = gone ? flow_movement::kDead : flow_movement::kDoneZ0,
                 .outcome = outcome_[at]});
    } else if (requests_[at] > 0) {
      admit(slot, requests_[at]);
    }
  }
  const bool looks = rules_.cleanup_interval > 0 && (t + 1) % rules_.cleanup_interval == 0;
  if (looks && 2 * active_ < span_) compact();
}

// Children of one parent, in the order of its sample's requests: as many as the quota leaves room for.
void SampleFlows::admit(std::int64_t parent, std::int32_t count) {
  stats_[kRequests] += count;
  const std::int32_t admitted = std::min(count, rules_.quota - stats_[kCreated]);
  stats_[kDroppedSpawn] += count - admitted;
  for (std::int32_t ordinal = 0; ordinal < admitted; ++ordinal, ++span_, ++active_) {
    const auto at = static_cast<std::size_t>(span_);
    bear(parent, span_);
    parent_[at] = static_cast<std::int32_t>(parent);
    status_[at] = flow_movement::kActive, number_[at] = stats_[kCreated]++;
  }
}

// Where the parent was before the step, with its state after it.
void SampleFlows::bear(std::int64_t parent, std::int64_t child) {
  for (int axis = 0; axis < 3; ++axis) position_.at(child, axis) = before_.at(parent, axis);
  energy_.at(child) = child_energy_.at(parent);
  hidden_.move(parent, child);
  age_[static_cast<std::size_t>(child)] = 0;
}

void SampleFlows::keep_start(const TileStep& step) const {
  keep_state(step);
  // Steps, and so ages, are fewer than 65,536.
  for (int lane = 0; lane < kLanes; ++lane)
    step.replayed[lane] = static_cast<float>(age_[static_cast<std::size_t>(step.tile * kLanes + lane)]);
}

void SampleFlows::take_start(const TileStep& step) {
  std::copy_n(step.state, 3 * kLanes, position_.tile(step.tile));
  std::copy_n(step.state + 3 * kLanes, kLanes, energy_.tile(step.tile));
  hidden_.take(step.tile, step.hidden);
  for (int lane = 0; lane < kLanes; ++lane)
    age_[static_cast<std::size_t>(step.tile * kLanes + lane)] = static_cast<std::int32_t>(step.replayed[lane]);
}

void SampleFlows::set_live(std::int64_t tile, std::uint32_t active) {
  for (int lane = 0; lane < kLanes; ++lane)
    status_[static_cast<std::size_t>(tile * kLanes + lane)] = (active >> lane & 1) != 0 ? flow_movement::kActive : 0;
}

void SampleFlows::compact() {
  std::int64_t to = 0;
  for (std::int64_t from = 0; from < span_; ++from) {
    const auto at = static_cast<std::size_t>(from), there = static_cast<std::size_t>(to);
    if (status_[at] != flow_movement::kActive) continue;
    if (from != to) {
      for (const Field* field : {&position_, &energy_}) field->move(from, to);
      hidden_.move(from, to);
      age_[there] = age_[at], number_[there] = number_[at];
      status_[at] = 0, status_[there] = flow_movement::kActive;
    }
    ++to;
  }
  span_ = to;
}

void SampleFlows::sum_cells() {
  namespace rule = surface_collection;
  const std::int32_t count = ended_count_;
  for (std::int32_t i = 0; i < count; ++i) {
    Ended& flow = ended_[static_cast<std::size_t>(i)];
    note(std::min(cell_margin(flow.x, rules_.width), cell_margin(flow.y, rules_.height)));
    flow.cell = rule::cell_along(flow.y, rules_.height) * rules_.width + rule::cell_along(flow.x, rules_.width);
    flow.weight = rule::weight_of(flow.energy, flow.distance, flow.age);
    rule::Cell& cell = cells_[static_cast<std::size_t>(flow.cell)];
    cell.largest_weight = std::max(cell.largest_weight, flow.weight);
    cell.magnitude = std::max(cell.magnitude, rule::magnitude_of(flow.energy));
  }
  for (std::int32_t i = 0; i < count; ++i) {
    const Ended& flow = ended_[static_cast<std::size_t>(i)];
    rule::Cell& cell = cells_[static_cast<std::size_t>(flow.cell)];
    if (!(cell.largest_weight < INFINITY)) continue;
    const float share = rule::share_of(flow.weight, cell.largest_weight);
    cell.shares += rule::units_of(share);
    cell.energies += rule::units_of(rule::scaled_energy(share, flow.energy, rule::inverse_scale(cell.magnitude)));
  }
}

void SampleFlows::uncollect(const float* grad_surface, float* grad_energy) {
  namespace rule = surface_collection;
  sum_cells();
  for (std::int32_t i = 0; i < ended_count_; ++i) {
    const Ended& flow = ended_[static_cast<std::size_t>(i)];
    const rule::Cell& cell = cells_[static_cast<std::size_t>(flow.cell)];
    grad_energy[flow.number] = rule::energy_gradient(
        flow.energy, rule::share_of(flow.weight, cell.largest_weight), rule::weight_factor(flow.distance, flow.age),
        rule::total_share(cell), rule::mean_energy(cell), grad_surface[flow.cell]);
  }
  for (std::int32_t i = 0; i < ended_count_; ++i)
    cells_[static_cast<std::size_t>(ended_[static_cast<std::size_t>(i)].cell)] = kEmpty;
}

void SampleFlows::collect(float* surface) {
  namespace rule = surface_collection;
  sum_cells();
  stats_[kCells] = 0;
  for (std::int32_t s = 0; s < rules_.cells(); ++s) {
    rule::Cell& cell = cells_[static_cast<std::size_t>(s)];
    surface[s] = rule::mean_energy(cell);
    stats_[kCells] += cell.largest_weight > -INFINITY;
    cell = kEmpty;
  }
}

}  // namespace twinbench::energy_flow::flow_forward

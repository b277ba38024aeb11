// HostRules of the library's way as masks over all live flows, sums by sample as index_add.
#include "baselines/energy_flow/common/live_flows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "src/energy_flow/common/flow_lives.h"

namespace twinbench::energy_flow::flow_forward {

LiveFlows::LiveFlows(const Setting& setting, const HostRules& rules, const at::Tensor& surface,
                     const at::Tensor& sample_key)
    : rules_(rules),
      samples_(surface.size(0)),
      start_depth_(Grid(setting, surface.options()).start_depth()),
      tells_margin_(!sets_decisions_aside(setting)),
      keys_(sample_key) {
  const std::int64_t cells = surface.size(1), placed = std::min(cells, rules.quota);
  const auto whole = surface.options().dtype(at::kLong);
  const at::Tensor cell = at::arange(placed, whole);
  // In fp32 in the documented order: multiply, divide, subtract.
  const auto along = [&](const at::Tensor& index, std::int64_t last) {
    return index.to(at::kFloat).mul(2).div(static_cast<double>(last)).sub(1).to(surface.scalar_type());
  };
  const at::Tensor place = at::stack(
      {along(cell.remainder(rules.width), rules.width - 1), along(cell.floor_divide(rules.width), rules.height - 1),
       at::full({placed}, start_depth_, surface.options())},
      1);
  const std::int64_t flows = samples_ * placed;
  position_ = place.repeat({samples_, 1});
  energy_ = surface.narrow(1, 0, placed).reshape({flows, 1});
  hidden_ = at::zeros({setting.size("layers"), flows, setting.size("hidden")}, surface.options());
  sample_ = at::arange(samples_, whole).unsqueeze(1).expand({samples_, placed}).reshape({-1});
  local_id_ = cell.repeat({samples_});
  age_ = at::zeros({flows}, whole);
  stats_ = at::zeros({kStatistics, samples_}, whole);
  stats_.select(0, kCreated).fill_(placed);
  stats_.select(0, kDroppedInitial).fill_(cells - placed);
  active_ = at::zeros({samples_, rules.max_steps}, whole);
  margin_ = at::ones({samples_}, surface.options());
  best_ = at::zeros({samples_}, whole);
  stall_ = at::zeros({samples_}, whole);
  finished_ = at::zeros({samples_}, whole.dtype(at::kBool));
}

at::Tensor LiveFlows::per_sample(const at::Tensor& of_flows) const {
  return at::zeros({samples_}, sample_.options()).index_add_(0, sample_, of_flows.to(at::kLong));
}
void LiveFlows::count(Statistic column, const at::Tensor& which) { stats_.select(0, column).add_(per_sample(which)); }

void LiveFlows::note(const at::Tensor& margins, const at::Tensor& which) {
  margin_.scatter_reduce_(0, sample_, at::where(which, margins.detach().to(margin_.scalar_type()), 1.0), "amin");
}

bool LiveFlows::look(std::int64_t t) {
  const at::Tensor active = per_sample(at::ones_like(sample_)), open = finished_.logical_not();
  at::Tensor reason = at::where(active.eq(0), 1, t == rules_.max_steps ? 2 : 0);
  if (rules_.convergence && t >= rules_.min_steps) {
    const at::Tensor done = stats_.select(0, kDoneZ0) + stats_.select(0, kDoneZD) + stats_.select(0, kProjectedAge);
    const at::Tensor share = done.to(at::kDouble).div(stats_.select(0, kCreated).to(at::kDouble));
    reason = at::where(reason.eq(0).logical_and(share.ge(rules_.threshold)), 3, reason);
    const at::Tensor undecided = reason.eq(0).logical_and(open), more = undecided.logical_and(done.gt(best_));
    const at::Tensor waits = undecided.logical_and(more.logical_not()).logical_and(best_.gt(0));
    best_ = at::where(more, done, best_);
    stall_ = at::where(more, 0, stall_ + waits);
    reason = at::where(waits.logical_and(stall_.ge(rules_.patience)), 4, reason);
  }
  const at::Tensor ends = reason.gt(0).logical_and(open);
  stats_.select(0, kReason).copy_(at::where(ends, reason, stats_.select(0, kReason)));
  stats_.select(0, kSteps).copy_(at::where(ends, t, stats_.select(0, kSteps)));
  finished_ = finished_.logical_or(ends);
  const at::Tensor live = at::where(finished_, 0, active);
  if (ends.any().item<bool>() && sample_.size(0) > 0) {
    const at::Tensor stopped = ends.index_select(0, sample_), z = position_.select(1, 2);
    count(rules_.drop ? kDroppedStop : kProjectedStop, stopped);
    if (!rules_.drop) {
      note(z.abs(), stopped.logical_and(z.ne(start_depth_)));
      at::Tensor at_plane = position_.clone();
      at_plane.select(1, 2).copy_(at::where(z.le(0), -1.0, 1.0));
      end(stopped, at_plane, energy_, age_, at::rsub(z.abs(), 1));
    }
    keep(stopped.logical_not());
  }
  if (live.sum().item<std::int64_t>() == 0) return false;
  active_.select(1, t).copy_(live);
  return true;
}

void LiveFlows::end(const at::Tensor& which, const at::Tensor& position, const at::Tensor& energy,
                    const at::Tensor& age, const at::Tensor& distance) {
  const at::Tensor index = which.nonzero().squeeze(1);
  // Decision 16: a gradient goes through the energies alone.
  ended_.push_back({position.detach().index_select(0, index), energy.index_select(0, index).squeeze(1),
                    age.index_select(0, index), distance.detach().index_select(0, index),
                    sample_.index_select(0, index)});
}

void LiveFlows::keep(const at::Tensor& which) {
  const at::Tensor index = which.nonzero().squeeze(1);
  if (index.size(0) == sample_.size(0)) return;
  for (at::Tensor* of : {&position_, &energy_, &sample_, &local_id_, &age_}) *of = of->index_select(0, index);
  hidden_ = hidden_.index_select(1, index);
}

void LiveFlows::advance(std::int64_t, const Moves& moves) {
  const at::Tensor& raw = moves.raw;
  const at::Tensor across = raw.narrow(1, 0, 2), z = raw.select(1, 2), finite = raw.isfinite().all(1);
  count(kDiedNonFinite, finite.logical_not());
  note(z.abs().sub(1).abs(), finite);
  at::Tensor stays = finite;
  if (rules_.kill) {
    note(across.abs().sub(1).abs().amin(1), finite);
    const at::Tensor outside = across.abs().gt(1).any(1).logical_and(finite);
    count(kDiedBounds, outside);
    stays = finite.logical_and(outside.logical_not());
  }
  const at::Tensor low = z.le(-1).logical_and(stays), high = z.ge(1).logical_and(stays);
  const at::Tensor inside = stays.logical_and(low.logical_or(high).logical_not()), age = age_.add(1);
  const at::Tensor aged =
      rules_.projection_age > 0 ? inside.logical_and(age.ge(rules_.projection_age)) : at::zeros_like(inside);
  const at::Tensor on = inside.logical_and(aged.logical_not()), done = stays.logical_and(on.logical_not());
  count(kDoneZ0, low), count(kDoneZD, high), count(kProjectedAge, aged);
  note(z.abs(), aged);
  // Twice the clamped value less the value is one fold at the border it passed, and the value itself inside.
  const at::Tensor settled = rules_.kill ? across : at::clamp(across, -1, 1).mul_(2).sub_(across).clamp_(-1, 1);
  const at::Tensor plane = at::where(low.logical_or(aged.logical_and(z.le(0))), -1.0, 1.0).to(z.scalar_type());
  const at::Tensor place = at::cat({settled, at::where(on, z, plane).unsqueeze(1)}, 1);
  if (rules_.projection_age > 0 || done.any().item<bool>())
    end(done, place, moves.energy, age, at::where(aged, at::rsub(z.abs(), 1), 0.0));

  const at::Tensor before = position_;
  position_ = place, energy_ = moves.energy, hidden_ = moves.hidden, age_ = age;
  if (rules_.spawn == 0) return keep(on);
  const at::Tensor measure =
      rules_.spawn == 2 ? moves.gate.squeeze(1) : at::linalg_vector_norm(moves.move, 2, at::IntArrayRef{1});
  note_spawn(measure, on);
  const double threshold = rules_.spawn == 1 ? rules_.theta : rules_.tau;
  const at::Tensor wide = measure.detach().to(at::kDouble);
  at::Tensor children = rules_.spawn == 1
                            ? wide.div(threshold).floor_().sub_(1)
                            : wide.sub(threshold).div_(1 - threshold).mul_(rules_.most_spawned).floor_().add_(1);
  children = at::where(measure.gt(threshold).logical_and(on), children.clamp_max_(rules_.most_spawned), 0.0);
  const at::Tensor count = children.to(at::kLong);
  const at::Tensor energy = rules_.spawn == 1 ? moves.energy : at::div(moves.child, count.add(1).unsqueeze(1));
  const at::Tensor sample = sample_, hidden = hidden_;
  // Requests in the order of parents: as many of a sample's as its quota leaves room for.
  const at::Tensor requested = per_sample(count), created = stats_.select(0, kCreated);
  const at::Tensor first = at::cumsum(count, 0).sub_(count);
  const at::Tensor first_of_sample = at::cumsum(requested, 0).sub_(requested);
  const at::Tensor room = at::rsub(created, rules_.quota).add_(first_of_sample).index_select(0, sample).sub_(first);
  const at::Tensor admitted = at::minimum(count, room).clamp_min_(0), grown = per_sample(admitted);
  stats_.select(0, kRequests).add_(requested);
  stats_.select(0, kDroppedSpawn).add_(requested.sub(grown));
  keep(on);
  const at::Tensor parent = at::repeat_interleave(admitted);
  if (parent.size(0) == 0) return;
  const at::Tensor of = sample.index_select(0, parent);
  const at::Tensor number = at::arange(parent.size(0), parent.options())
                                .add_(created.sub(at::cumsum(grown, 0)).add_(grown).index_select(0, of));
  stats_.select(0, kCreated).add_(grown);
  // Back into the order of samples and numbers.
  const at::Tensor order = at::argsort(at::cat({sample_, of}), /*stable=*/true, 0, false);
  const auto joined = [&](const at::Tensor& old, const at::Tensor& grown_ones) {
    return at::cat({old, grown_ones}).index_select(0, order);
  };
  position_ = joined(position_, before.index_select(0, parent));
  energy_ = joined(energy_, energy.index_select(0, parent));
  hidden_ = at::cat({hidden_, hidden.index_select(1, parent)}, 1).index_select(1, order);
  sample_ = joined(sample_, of);
  local_id_ = joined(local_id_, number);
  age_ = joined(age_, at::zeros_like(of));
}

void LiveFlows::note_spawn(const at::Tensor& measure, const at::Tensor& which) {
  const double most = rules_.most_spawned;
  for (int i = 0; i < most; ++i)
    note(rules_.spawn == 1 ? measure.div(rules_.theta).sub_(i + 2).abs_()
                           : measure.sub(rules_.tau + i * (1 - rules_.tau) / most).abs_(),
         which);
}

at::Tensor LiveFlows::places() const { return sample_.mul(rules_.most_flows()).add_(local_id_); }
at::Tensor LiveFlows::dense(const at::Tensor& rows, const at::Tensor& places, std::int64_t axis) const {
  std::vector<std::int64_t> sizes = rows.sizes().vec();
  sizes[static_cast<std::size_t>(axis)] = samples_ * rules_.most_flows();
  return at::zeros(sizes, rows.options()).index_copy_(axis, places, rows);
}

at::Tensor LiveFlows::noise(const ExplorationNoise& noise, std::int64_t t) const {
  const at::Tensor keys = keys_.index_select(0, sample_).cpu(), ids = local_id_.cpu();
  const at::Tensor drawn = at::empty({ids.size(0), 3}, at::kFloat);
  float* const out = drawn.mutable_data_ptr<float>();
  const auto *key = keys.const_data_ptr<std::int64_t>(), *id = ids.const_data_ptr<std::int64_t>();
  for (std::int64_t f = 0; f < ids.size(0); ++f) std::ranges::copy(noise.draw(key[f], id[f], t), out + 3 * f);
  return drawn.to(position_.options());
}

at::Tensor LiveFlows::cell_along(const at::Tensor& coordinate, std::int64_t extent, const at::Tensor& sample) {
  const at::Tensor at = coordinate.add(1).mul_(0.5).mul_(static_cast<double>(extent - 1)), nearest = at.round();
  const at::Tensor tie = at::rsub(at.sub(nearest).abs_(), 0.5).div_(std::max(1.0, static_cast<double>(extent - 1) / 7));
  margin_.scatter_reduce_(0, sample, tie.abs_(), "amin");
  return nearest.clamp(0, extent - 1).to(at::kLong);
}

void LiveFlows::collect(NamedTensors& results) {
  const std::int64_t cells = rules_.width * rules_.height;
  at::Tensor surface = at::zeros({samples_ * cells}, margin_.options());
  if (!ended_.empty()) {
    const auto all = [&](at::Tensor Ended::*field) {
      std::vector<at::Tensor> parts;
      for (const Ended& one : ended_) parts.push_back(one.*field);
      return at::cat(parts);
    };
    const at::Tensor place = all(&Ended::position), energy = all(&Ended::energy), sample = all(&Ended::sample);
    const at::Tensor cell = cell_along(place.select(1, 1), rules_.height, sample)
                                .mul_(rules_.width)
                                .add_(cell_along(place.select(1, 0), rules_.width, sample));
    const at::Tensor key = sample.mul(cells).add_(cell);
    const at::Tensor weight = energy.abs()
                                  .mul_(at::reciprocal(all(&Ended::distance).add_(1)))
                                  .mul_(all(&Ended::age).to(energy.scalar_type()).mul_(0.1).add_(1));
    const at::Tensor none = at::full({samples_ * cells}, -std::numeric_limits<double>::infinity(), energy.options());
    const at::Tensor largest = none.scatter_reduce(0, key, weight.detach(), "amax");
    const at::Tensor share = weight.sub(largest.index_select(0, key)).exp_();
    const at::Tensor shares = at::zeros_like(surface).index_add_(0, key, share);
    surface.index_add_(0, key, at::mul(share, energy));
    const at::Tensor reached = largest.gt(-std::numeric_limits<double>::infinity()).logical_or(largest.isnan());
    surface = at::where(reached, surface.div(shares), 0.0);
    stats_.select(0, kCells).copy_(reached.view({samples_, cells}).sum(1));
  }
  results.set("surface", surface.view({samples_, cells}));
  results.set("stats", stats_.t().to(at::kInt).contiguous());
  results.set("active", active_.to(at::kInt));
  results.set("margin", tells_margin_ ? margin_ : at::ones_like(margin_));
}

}  // namespace twinbench::energy_flow::flow_forward

// Nested host loops over samples, steps and flows; everything about a flow is read back one value at a time.
#include "baselines/energy_flow/common/flow_by_flow.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "baselines/energy_flow/common/networks.h"
#include "src/energy_flow/common/flow_lives.h"

namespace twinbench::energy_flow::flow_forward {

FlowByFlow::FlowByFlow(const NamedTensors& inputs, const Setting& setting, const std::string& like, std::int64_t chunk,
                       bool logs)
    : TapeBaseline(inputs, setting),
      rules_(setting),
      options_(inputs[like].options()),
      grid_(setting, options_),
      noise_(setting),
      chunk_(chunk),
      logs_(logs),
      sample_key_(on_host("sample_key")) {
  keep_recurrent_weights(inputs_, inputs, setting.size("layers"));
}

void FlowByFlow::start() {
  active_ = at::zeros({samples(), rules_.max_steps}, at::kInt);
  surface_ = at::zeros({samples(), rules_.width * rules_.height}, options_);
  books_.assign(static_cast<std::size_t>(samples()), {});
  flows_.assign(static_cast<std::size_t>(samples()), {});
  flow_steps_ = 0, stop_tests_ = 0;
  for (std::int64_t b = 0; b < samples(); ++b) place(b);
}

void FlowByFlow::live() {
  start();
  const at::Tensor progress = at::empty({samples()}, options_.dtype(at::kLong));
  for (std::int64_t t = 0; look(t, progress); ++t) step(t);
  for (std::int64_t b = 0; b < samples(); ++b) collect(b);
}

void FlowByFlow::place(std::int64_t b) {
  const at::Tensor cells = start_energies(b);
  const std::int64_t all = cells.size(0), placed = std::min(all, rules_.quota);
  const std::int64_t layers = setting_.size("layers"), hidden = setting_.size("hidden");
  for (std::int64_t s = 0; s < placed; ++s) flows(b).push_back(grid_.placed(s, cells, layers, hidden));
  book(b).active = placed;
  book(b).stats[kCreated] = static_cast<std::int32_t>(placed);
  book(b).stats[kDroppedInitial] = static_cast<std::int32_t>(all - placed);
}

// The stop rule of every unfinished sample, each after a read that waits. False when all have finished.
bool FlowByFlow::look(std::int64_t t, at::Tensor progress) {
  bool any = false;
  for (std::int64_t b = 0; b < samples(); ++b) {
    Book& one = book(b);
    if (one.finished()) continue;
    std::int64_t done = one.completed();
    if (rules_.convergence) done = progress.select(0, b).fill_(done).template item<std::int64_t>();
    stop_tests_ += rules_.convergence;
    one.look(rules_, t, done);
    any = any || !one.finished();
    if (one.finished()) end_sample(b);
  }
  return any;
}

// Live flows of a sample that stops.
void FlowByFlow::end_sample(std::int64_t b) {
  for (Flow& flow : flows(b)) {
    if (flow.fate != Fate::kActive) continue;
    flow.fate = rules_.drop ? Fate::kGone : Fate::kAtStop;
    ++book(b).stats[rules_.drop ? kDroppedStop : kProjectedStop];
  }
}

void FlowByFlow::step(std::int64_t t) {
  Live live;
  for (std::int64_t b = 0; b < samples(); ++b) {
    for (std::size_t i = 0; !book(b).finished() && i < flows(b).size(); ++i)
      if (flows(b)[i].fate == Fate::kActive) live.emplace_back(b, i);
    if (!book(b).finished())
      active_.mutable_data_ptr<std::int32_t>()[b * rules_.max_steps + t] = static_cast<std::int32_t>(book(b).active);
  }
  if (logs_) log(live);
  requests_.assign(flows_.size(), {});
  const auto chunk = static_cast<std::size_t>(chunk_);
  for (std::size_t from = 0; from < live.size(); from += chunk)
    advance({live.begin() + static_cast<std::ptrdiff_t>(from),
             live.begin() + static_cast<std::ptrdiff_t>(std::min(from + chunk, live.size()))},
            t);
  for (std::int64_t b = 0; b < samples(); ++b) admit(b);
}

// Through the networks together, then each by itself.
void FlowByFlow::advance(const Live& live, std::int64_t t) {
  const auto count = static_cast<std::int64_t>(live.size());
  const Batch batch{at::empty({count, 3}, options_), at::empty({count, 1}, options_),
                    at::empty({count, setting_.size("layers"), setting_.size("hidden")}, options_)};
  std::vector<float> drawn(static_cast<std::size_t>(3 * count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto [b, at] = live[static_cast<std::size_t>(i)];
    const Flow& flow = flows(b)[at];
    batch.position.select(0, i).copy_(flow.position);
    batch.energy.select(0, i).copy_(flow.energy);
    batch.hidden.select(0, i).copy_(flow.hidden);
    if (noise_.on())
      std::ranges::copy(noise_.draw(sample_key_.const_data_ptr<std::int64_t>()[b], flow.local_id, t),
                        drawn.data() + 3 * i);
  }
  Moves moves = networks(batch);
  moves.raw = at::add(batch.position, moves.move);
  if (noise_.on()) {
    const at::Tensor noise = at::from_blob(drawn.data(), {count, 3}, at::kFloat).to(options_);
    moves.raw = at::add(moves.raw, noise);
    moves.move = at::add(moves.move, noise);
  }
  // Twice the clamped value less the value is one fold at the border that it passed, and the value itself inside.
  if (!rules_.kill) moves.folded = at::clamp(moves.raw, -1, 1).mul_(2).sub_(moves.raw).clamp_(-1, 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto [b, at] = live[static_cast<std::size_t>(i)];
    const Flow before = flows(b)[at];
    Flow& flow = flows(b)[at];
    const Readings readings = read(flow, moves, i, rules_);
    scatter(flow, moves, i, rules_.kill);
    const std::int64_t children = settle(flow, readings, rules_, book(b));
    if (children > 0)
      requests_[static_cast<std::size_t>(b)].push_back(
          {before.position, rules_.spawn == 2 ? moves.child.narrow(0, i, 1).select(0, 0) : flow.energy, flow.hidden,
           children, flow_steps_});
    settled(b, at, readings, children);
    ++flow_steps_;
  }
}

// Children of one step, in the order of their parents: as many as the quota leaves room for.
void FlowByFlow::admit(std::int64_t b) {
  Book& one = book(b);
  for (const Request& spawn : requests_[static_cast<std::size_t>(b)]) {
    one.stats[kRequests] += static_cast<std::int32_t>(spawn.count);
    for (std::int64_t ordinal = 0; ordinal < spawn.count; ++ordinal) {
      if (one.stats[kCreated] >= rules_.quota) {
        ++one.stats[kDroppedSpawn];
        continue;
      }
      at::Tensor energy = spawn.energy.clone();
      if (rules_.spawn == 2) energy.div_(spawn.count + 1);
      admitted(spawn, b, flows(b).size());
      flows(b).push_back({.position = spawn.position.clone(),
                          .energy = energy,
                          .hidden = spawn.hidden.clone(),
                          .age = grid_.no_age(),
                          .local_id = one.stats[kCreated]++});
      ++one.active;
    }
  }
}

namespace {

// Five figures of the live energies, for a log that nobody limits.
void write_log(const at::Tensor& energies) {
  const at::Tensor mean = at::mean(energies), apart = at::sub(energies, mean);
  const at::Tensor deviation = at::sqrt(at::mean(at::mul(apart, apart)));
  const at::Tensor upper = at::sum(at::gt(energies, 0));  // of a histogram with two bins
  for (const at::Tensor& figure : {at::min(energies), at::max(energies), mean, deviation, upper})
    (void)figure.item<double>();
}

}  // namespace

void FlowByFlow::log(const Live& live) {
  std::vector<at::Tensor> energies;
  for (const auto& [b, at] : live) energies.push_back(flows(b)[at].energy);
  if (!energies.empty()) write_log(at::nan_to_num(at::cat(energies)));
}

at::Tensor FlowByFlow::stats() const {
  const at::Tensor stats = at::empty({samples(), kStatistics}, at::kInt);
  for (std::size_t b = 0; b < books_.size(); ++b)
    std::copy_n(books_[b].stats.data(), int{kStatistics}, stats.mutable_data_ptr<std::int32_t>() + b * kStatistics);
  return stats;
}
at::Tensor FlowByFlow::margin() const {
  const at::Tensor margin = at::empty({samples()}, at::kDouble);
  const bool aside = sets_decisions_aside(setting_);
  for (std::size_t b = 0; b < books_.size(); ++b) margin.mutable_data_ptr<double>()[b] = aside ? 1 : books_[b].margin;
  return margin;
}

NamedTensors FlowByFlow::outputs() {
  NamedTensors all = TapeBaseline::outputs();
  // Beside the floating results, on their device.
  for (const auto& [name, tensor] : host_results_)
    all.set(name, name == "margin" ? tensor.to(surface_.options()) : tensor.to(surface_.device()));
  return all;
}

}  // namespace twinbench::energy_flow::flow_forward

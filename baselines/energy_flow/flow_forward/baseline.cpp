// Baseline of energy_flow.flow_forward: nested host loops, one flow after another, its buffers gathered before and
// scattered after each of its steps, everything about it read back one value at a time.
#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "baselines/common/tape.h"
#include "baselines/energy_flow/common/flows.h"
#include "baselines/energy_flow/common/groups.h"
#include "baselines/energy_flow/common/networks.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

template <class Real>
class Baseline final : public TapeBaseline {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting),
        rules_(setting),
        noise_(setting),
        chunk_(static_cast<std::int64_t>(setting.option("baseline_chunk"))),
        logs_(setting.on("step_logging")),
        mapper_(inputs_),
        neuron_(inputs_),
        layers_(RecurrentLayer::all(inputs_, setting.size("layers"))),
        heads_(inputs_, setting),
        grid_(setting, inputs["embedding"].options()),
        sample_key_(inputs["sample_key"].cpu().contiguous()) {}

 private:
  void compute() override {
    const auto options = inputs_["embedding"].options();
    const std::int64_t samples = setting_.size("samples");
    active_ = at::zeros({samples, rules_.max_steps}, at::kInt);
    surface_ = at::zeros({samples, rules_.width * rules_.height}, options);
    books_.assign(static_cast<std::size_t>(samples), {});
    flows_.assign(static_cast<std::size_t>(samples), {});
    const at::Tensor progress = at::empty({samples}, options.dtype(at::kLong));
    for (std::int64_t b = 0; b < samples; ++b) place(b);
    for (std::int64_t t = 0; look(t, progress); ++t) step(t);
    for (std::int64_t b = 0; b < samples; ++b) collect(b);
    write_results(samples);
  }

  Book& book(std::int64_t b) { return books_[static_cast<std::size_t>(b)]; }
  std::vector<Flow>& flows(std::int64_t b) { return flows_[static_cast<std::size_t>(b)]; }
  std::int64_t samples() const { return static_cast<std::int64_t>(books_.size()); }

  void place(std::int64_t b) {
    const at::Tensor cells = mapper_(inputs_["embedding"].narrow(0, b, 1)).view({-1});
    const std::int64_t all = cells.size(0), placed = std::min(all, rules_.quota);
    const std::int64_t layers = setting_.size("layers"), hidden = setting_.size("hidden");
    for (std::int64_t s = 0; s < placed; ++s) flows(b).push_back(grid_.placed(s, cells, layers, hidden));
    book(b).active = placed;
    book(b).stats[kCreated] = static_cast<std::int32_t>(placed);
    book(b).stats[kDroppedInitial] = static_cast<std::int32_t>(all - placed);
  }

  // The stop rule of every unfinished sample, each after a read that waits. False when all have finished.
  bool look(std::int64_t t, at::Tensor progress) {
    bool any = false;
    for (std::int64_t b = 0; b < samples(); ++b) {
      Book& one = book(b);
      if (one.finished()) continue;
      std::int64_t done = one.completed();
      if (rules_.convergence) done = progress.select(0, b).fill_(done).template item<std::int64_t>();
      one.look(rules_, t, done);
      any = any || !one.finished();
      if (one.finished()) end_sample(b);
    }
    return any;
  }

  // Live flows of a sample that stops.
  void end_sample(std::int64_t b) {
    for (Flow& flow : flows(b)) {
      if (flow.fate != Fate::kActive) continue;
      flow.fate = rules_.drop ? Fate::kGone : Fate::kAtStop;
      ++book(b).stats[rules_.drop ? kDroppedStop : kProjectedStop];
    }
  }

  void step(std::int64_t t) {
    std::vector<std::pair<std::int64_t, std::size_t>> live;  // sample and place among its flows
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
  void advance(const std::vector<std::pair<std::int64_t, std::size_t>>& live, std::int64_t t) {
    const auto count = static_cast<std::int64_t>(live.size());
    const auto options = inputs_["embedding"].options();
    const at::Tensor position = at::empty({count, 3}, options), energy = at::empty({count, 1}, options),
                     hidden = at::empty({count, setting_.size("layers"), setting_.size("hidden")}, options);
    std::vector<float> drawn(static_cast<std::size_t>(3 * count));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto [b, at] = live[static_cast<std::size_t>(i)];
      const Flow& flow = flows(b)[at];
      position.select(0, i).copy_(flow.position);
      energy.select(0, i).copy_(flow.energy);
      hidden.select(0, i).copy_(flow.hidden);
      if (noise_.on())
        std::ranges::copy(noise_.draw(sample_key_.const_data_ptr<std::int64_t>()[b], flow.local_id, t),
                          drawn.data() + 3 * i);
    }
    const at::Tensor next = carry(neuron_(position, energy), energy, hidden);
    const Intent intent = heads_(carried_);
    Moves moves{.energy = intent.energy,
                .raw = at::add(position, intent.delta),
                .move = intent.delta,
                .hidden = next,
                .gate = intent.gate,
                .child = intent.child};
    if (noise_.on()) {
      const at::Tensor noise = at::from_blob(drawn.data(), {count, 3}, at::kFloat).to(options);
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
             children});
    }
  }

  // features [flows, features], energy [flows, 1], hidden [flows, layers, width]: the next hidden state, and in
  // carried_ what the heads take.
  at::Tensor carry(const at::Tensor& features, const at::Tensor& energy, const at::Tensor& hidden) {
    at::Tensor x = guarded(at::cat({features, energy}, 1));
    const at::Tensor h = guarded(hidden);
    std::vector<at::Tensor> next;
    for (std::size_t l = 0; l < layers_.size(); ++l)
      next.push_back(x = cell(layers_[l], x, h.select(1, static_cast<std::int64_t>(l))));
    carried_ = guarded(x);
    return guarded(at::stack(next, 1));
  }

  static at::Tensor cell(const RecurrentLayer& layer, const at::Tensor& x, const at::Tensor& h) {
    const at::Tensor from_input = layer.input(x), from_hidden = layer.hidden(h);
    const auto block = [width = h.size(1)](const at::Tensor& t, std::int64_t i) {
      return t.narrow(1, i * width, width);
    };
    const at::Tensor reset = at::sigmoid(at::add(block(from_input, 0), block(from_hidden, 0)));
    const at::Tensor update = at::sigmoid(at::add(block(from_input, 1), block(from_hidden, 1)));
    const at::Tensor candidate = at::tanh(at::add(block(from_input, 2), at::mul(reset, block(from_hidden, 2))));
    return at::add(at::mul(at::rsub(update, 1), candidate), at::mul(update, h));
  }

  // Children of one step, in the order of their parents: as many as the quota leaves room for.
  void admit(std::int64_t b) {
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
        flows(b).push_back({.position = spawn.position.clone(),
                            .energy = energy,
                            .hidden = spawn.hidden.clone(),
                            .age = grid_.no_age(),
                            .local_id = one.stats[kCreated]++});
        ++one.active;
      }
    }
  }

  // Five figures of the live energies, for a log that nobody limits.
  static void write_log(const at::Tensor& energies) {
    const at::Tensor mean = at::mean(energies), apart = at::sub(energies, mean);
    const at::Tensor deviation = at::sqrt(at::mean(at::mul(apart, apart)));
    const at::Tensor upper = at::sum(at::gt(energies, 0));  // of a histogram with two bins
    for (const at::Tensor& figure : {at::min(energies), at::max(energies), mean, deviation, upper})
      (void)figure.item<double>();
  }
  void log(const std::vector<std::pair<std::int64_t, std::size_t>>& live) {
    std::vector<at::Tensor> energies;
    for (const auto& [b, at] : live) energies.push_back(flows(b)[at].energy);
    if (!energies.empty()) write_log(at::nan_to_num(at::cat(energies)));
  }

  void collect(std::int64_t b) {
    Groups<Real> groups(rules_, grid_.start_depth(), book(b));
    for (const Flow& flow : flows(b)) groups.add(flow);
    groups.write(surface_.select(0, b));
  }

  void write_results(std::int64_t samples) {
    const at::Tensor stats = at::empty({samples, kStatistics}, at::kInt), margin = at::empty({samples}, at::kDouble);
    for (std::int64_t b = 0; b < samples; ++b) {
      std::copy_n(book(b).stats.data(), int{kStatistics}, stats.mutable_data_ptr<std::int32_t>() + b * kStatistics);
      margin.mutable_data_ptr<double>()[b] = book(b).margin;
    }
    host_results_ = {{"stats", stats}, {"active", active_}, {"margin", margin}};
    results_.set("surface", surface_);
  }

  NamedTensors outputs() override {
    NamedTensors all = TapeBaseline::outputs();
    for (const auto& [name, tensor] : host_results_)
      all.set(name, name == "margin" ? tensor.to(surface_.options()) : tensor.to(surface_.device()));
    return all;
  }

  const HostRules rules_;
  const ExplorationNoise noise_;
  const std::int64_t chunk_;
  const bool logs_;
  const Mapper mapper_;
  const Neuron neuron_;
  const std::vector<RecurrentLayer> layers_;
  const Heads heads_;
  const Grid grid_;
  at::Tensor sample_key_, carried_, surface_, active_;
  std::vector<Book> books_;
  std::vector<std::vector<Flow>> flows_;        // by sample, in the order of their numbers
  std::vector<std::vector<Request>> requests_;  // of this step
  NamedTensors host_results_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<Baseline<double>>(inputs, setting);
  return std::make_unique<Baseline<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_forward

// The two halves of a pass on the CPU, sample by sample and tile by tile.
#include "optimized/energy_flow/common/flow_pass.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "optimized/energy_flow/common/segments.h"
#include "optimized/energy_flow/common/step_decisions.h"
#include "src/energy_flow/common/flow_lives.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

constexpr std::int64_t kMostPieces = 4;  // of the batch, or of the only sample's tiles, each with sums of its own

std::int64_t tiles_of(const Rules& rules) { return (rules.most_flows() + kLanes - 1) / kLanes; }

float& at_place(const at::Tensor& field, std::int64_t channels, std::int64_t place, std::int64_t channel) {
  return data<float>(field)[(place / kLanes * channels + channel) * kLanes + place % kLanes];
}

std::vector<at::Tensor> packs_of(const TileNetworks& networks, const TileGradients& gradients) {
  std::vector<at::Tensor> all = networks.parameters().packs();
  for (const at::Tensor& pack : gradients.packs()) all.push_back(pack);
  return all;
}

float* row(const at::Tensor& of, std::int64_t i) { return data<float>(of) + i * of.size(1); }

}  // namespace

// One sample: its flows, their tape, and what the loss says of each flow, at its place. Where states are kept every so
// many steps, the tape is of one segment at a time, and the decisions are of all steps.
struct FlowPass::Sample {
  Sample(const Rules& rules, const TileNetworks& networks, std::int64_t states, bool taped, bool everything)
      : flows(rules, networks, states),
        tape(networks, states, everything ? FlowTape::Keeps::kEverything : FlowTape::Keeps::kState),
        starts(networks, states, FlowTape::Keeps::kStart) {
    if (!taped) return;
    const std::int64_t places = tiles_of(rules) * kLanes;
    for (auto [field, channels] : {std::pair(&position, std::int64_t{3}), std::pair(&energy, std::int64_t{1}),
                                   std::pair(&hidden, states), std::pair(&born, std::int64_t{4})})
      *field = at::zeros({places * channels}, at::kFloat);
  }

  std::int64_t bytes() const { return tape.bytes() + starts.bytes() + decisions.bytes(); }
  void clear() { tape.clear(), starts.clear(), decisions.clear(); }

  SampleFlows flows;
  FlowTape tape, starts;
  StepDecisions decisions;
  std::int64_t most_held = 0, forwards = 0;   // bytes; steps that were computed
  at::Tensor position, energy, hidden, born;  // [tiles][channels][kLanes]
};

FlowPass::FlowPass(const NamedTensors& inputs, const Setting& setting, FlowPlaces places)
    : places_(std::move(places)),
      taped_(places_.grad_surface.defined()),
      tells_margin_(!sets_decisions_aside(setting)),
      samples_(setting.size("samples")),
      states_(setting.size("layers") * setting.size("hidden")),
      rules_(setting, /*cleanup=*/0),
      networks_(inputs, setting),
      gradients_(inputs, setting, networks_),
      parts_(samples_ == 1 ? std::clamp<std::int64_t>(tiles_of(rules_), 1, kMostPieces) : 1),
      products_of_tile_(kLanes * products_of_flow_step(setting)) {
  const bool everything = taped_ && (setting.on("keep_everything") || setting.option("ckpt_every") > 0 ||
                                     setting.option("tape_budget") > 0);
  for (std::int64_t b = 0; b < samples_; ++b)
    flows_.push_back(std::make_unique<Sample>(rules_, networks_, states_, taped_, everything));
  if (taped_ && samples_ > 0)
    every_ = steps_between_states(setting, [&](std::int64_t every) { return most_held(every, most_steps(setting)); });
  // Of any number of rows up to samples: four are four pieces, and five are three, which are larger.
  const std::int64_t shares = std::min(samples_, kMostPieces) * parts_;
  scratch_ = at::empty({shares, gradients_.scratch_size()}, at::kFloat);
  if (!taped_) return;
  sums_ = at::zeros({shares, gradients_.layout().size}, at::kFloat);
  all_sums_ = at::zeros({gradients_.layout().size}, at::kFloat);
}
FlowPass::~FlowPass() = default;

void FlowPass::train(const NamedTensors& inputs, const Setting& setting, const at::Tensor& arena) {
  const auto made_of = [](const NamedTensors& parameters, const Setting& exact) {
    const TileNetworks networks(parameters, exact);
    return packs_of(networks, TileGradients(parameters, exact, networks));
  };
  arena_ = arena;
  sources_ = pack_sources(packs_of(networks_, gradients_), made_of, inputs, setting, arena);
}

Pieces FlowPass::pieces_of(std::int64_t rows) const { return Pieces::of(rows, 1, kMostPieces, 1); }

void FlowPass::forward(std::int64_t rows) {
  pieces_of(rows).each([this](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) forward_sample(b, piece);
  });
  tell(kHeld, tape_bytes());
}

void FlowPass::backward(std::int64_t rows) {
  const Pieces pieces = pieces_of(rows);
  pieces.each([this](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    over_parts(0, [&](std::int64_t part) { std::fill_n(row(sums_, piece + part), sums_.size(1), 0.0f); });
    for (std::int64_t b = begin; b < end; ++b) backward_sample(b, piece);
    over_parts(0, [&](std::int64_t part) { gradients_.finish(row(sums_, piece + part)); });
  });
  // Of other rows there may be fewer pieces.
  for (std::int64_t share = pieces.number() * parts_; share < sums_.size(0); ++share)
    std::fill_n(row(sums_, share), sums_.size(1), 0.0f);
  sum_columns<float>(sums_, all_sums_, all_sums_.size(0));
  std::int64_t most = 0, forwards = 0;
  for (std::int64_t b = 0; b < rows; ++b) {
    const Sample& sample = *flows_[static_cast<std::size_t>(b)];
    most += sample.most_held, forwards = std::max(forwards, sample.forwards);
  }
  tell(kLeft, tape_bytes()), tell(kPeak, most), tell(kStepForwards, forwards);
}

std::int64_t FlowPass::tape_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& sample : flows_) bytes += sample->bytes();
  return bytes;
}

// Of all samples, whose memory stays theirs.
std::int64_t FlowPass::most_held(std::int64_t every, std::int64_t steps) const {
  const std::int64_t tiles = tiles_of(rules_), segments = (steps + every - 1) / every;
  const Sample& one = *flows_.front();
  return samples_ * (one.starts.bytes_for(segments * tiles) + one.tape.bytes_for(std::min(every, steps) * tiles) +
                     steps * tiles * static_cast<std::int64_t>(sizeof(TileLife)));
}

void FlowPass::tell(TapeColumn column, std::int64_t value) const {
  if (places_.tape_bytes.defined()) data<std::int64_t>(places_.tape_bytes)[column] = value;
}

std::uint32_t FlowPass::key_of(std::int64_t b) const {
  return static_cast<std::uint32_t>(places_.sample_key.const_data_ptr<std::int64_t>()[b]);
}

// A sample that is alone is cut into parts of its live tiles. Which part's sums a tile adds to is told by its place
// among them, not by the threads. In a batch parts_ is 1, and scratch and sums are the piece's own.
// products: multiplications of all parts.
template <class Body>
void FlowPass::over_parts(double products, const Body& body) const {
  constexpr double kWork = 2 << 20;  // that pay for waking a thread
  const double of_part = std::max(1.0, products / static_cast<double>(parts_));
  const auto grain = static_cast<std::int64_t>(std::clamp(kWork / of_part, 1.0, static_cast<double>(kMostPieces)));
  at::parallel_for(0, parts_, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t part = first; part < last; ++part) body(part);
  });
}

void FlowPass::forward_sample(std::int64_t b, std::int64_t piece) {
  Sample& sample = *flows_[static_cast<std::size_t>(b)];
  SampleFlows& flows = sample.flows;
  const std::uint32_t key = key_of(b);
  const auto stride = static_cast<std::size_t>(parts_);
  sample.clear();
  sample.most_held = sample.forwards = 0;
  flows.place(data<float>(places_.initial_energy) + b * rules_.cells());
  for (std::int32_t t = 0; flows.look(t), !flows.finished(); ++t) {
    if (taped_) begin_step(sample, t);
    over_parts(products_of_tile_ * static_cast<double>(flows.tiles()), [&](std::int64_t part) {
      float* const scratch = row(scratch_, piece + part);
      if (!taped_) {
        for (std::int64_t tile = part; tile < flows.tiles(); tile += parts_) flows.advance(tile, t, key, scratch);
        return;
      }
      const FlowTape::Step& step = sample.tape.steps().back();
      for (std::size_t i = step.first + static_cast<std::size_t>(part); i < step.last; i += stride) {
        flows.advance(sample.tape[i].tile, t, key, scratch, &sample.tape[i]);
        if (every_ > 0) sample.decisions.note(i - step.first, sample.tape[i]);
      }
    });
    flows.settle(t);
    ++sample.forwards;
    sample.most_held = std::max(sample.most_held, sample.bytes());
  }
  if (places_.surface.defined()) flows.collect(data<float>(places_.surface) + b * rules_.cells());
  if (places_.margin.defined()) data<float>(places_.margin)[b] = tells_margin_ ? flows.margin() : 1.0f;
  if (places_.stats.defined())
    std::copy_n(flows.stats().data(), int{kStatistics}, data<std::int32_t>(places_.stats) + b * kStatistics);
}

// Room on the tape for every tile with a live flow. Of a step that begins a segment the states stay.
void FlowPass::begin_step(Sample& sample, std::int32_t t) const {
  const SampleFlows& flows = sample.flows;
  const bool begins = every_ > 0 && t % every_ == 0;
  if (begins) sample.tape.clear(), sample.starts.begin_step(flows.created());
  sample.tape.begin_step(flows.created());
  if (every_ > 0) sample.decisions.begin_step(flows.created());
  for (std::int64_t tile = 0; tile < flows.tiles(); ++tile) {
    const std::uint32_t active = flows.live_lanes(tile);
    if (active == 0) continue;
    sample.tape.add(tile, active);
    if (every_ > 0) sample.decisions.add(tile, active);
    if (begins) flows.keep_start(sample.starts.add(tile, active));
  }
}

// The steps of a segment once more, from the states that it began with, of the flows and with the children that there
// were: nothing is decided.
void FlowPass::repeat(Sample& sample, std::size_t segment, std::uint32_t key, std::int64_t piece) {
  SampleFlows& flows = sample.flows;
  const StepDecisions& decided = sample.decisions;
  const auto every = static_cast<std::size_t>(every_), stride = static_cast<std::size_t>(parts_);
  const FlowTape::Step start = sample.starts.steps()[segment];
  for (std::size_t i = start.first; i < start.last; ++i) flows.take_start(sample.starts[i]);
  sample.tape.clear();
  for (std::size_t t = segment * every; t < (segment + 1) * every; ++t) {
    const FlowTape::Step& of = decided.steps[t];
    if (t > segment * every)
      for (std::int32_t child = decided.steps[t - 1].created; child < of.created; ++child) flows.bear_again(child);
    sample.tape.begin_step(of.created);
    for (std::size_t i = of.first; i < of.last; ++i) {
      sample.tape.add(decided.tiles[i].tile, decided.tiles[i].active);
      flows.set_live(decided.tiles[i].tile, decided.tiles[i].active);
    }
    const FlowTape::Step& step = sample.tape.steps().back();
    over_parts(products_of_tile_ * static_cast<double>(of.last - of.first), [&](std::int64_t part) {
      for (std::size_t i = static_cast<std::size_t>(part); i < of.last - of.first; i += stride) {
        const TileStep& tile = sample.tape[step.first + i];
        flows.advance(tile.tile, static_cast<std::int32_t>(t), key, row(scratch_, piece + part), &tile);
        decided.recall(of.first + i, tile);
      }
    });
    ++sample.forwards;
  }
  sample.most_held = std::max(sample.most_held, sample.bytes());
}

void FlowPass::backward_sample(std::int64_t b, std::int64_t piece) {
  Sample& sample = *flows_[static_cast<std::size_t>(b)];
  for (const at::Tensor* of : {&sample.position, &sample.energy, &sample.hidden, &sample.born})
    std::fill_n(data<float>(*of), of->numel(), 0.0f);
  sample.flows.uncollect(data<float>(places_.grad_surface) + b * rules_.cells(), data<float>(sample.energy));
  std::int32_t created = sample.flows.created();
  const std::size_t segments = every_ > 0 ? sample.starts.steps().size() : 1;
  for (std::size_t left = segments; left-- > 0;) {
    if (left + 1 < segments) repeat(sample, left, key_of(b), piece);  // the last one is as its steps left it
    walk_back(sample, created, piece);
  }
  if (places_.grad_initial_energy.defined())
    std::copy_n(data<float>(sample.energy), rules_.placed(),
                data<float>(places_.grad_initial_energy) + b * rules_.cells());
  sample.clear();
}

// Back over the steps that are on the tape. created: flows that there were after them, then before.
void FlowPass::walk_back(Sample& sample, std::int32_t& created, std::int64_t piece) {
  const auto stride = static_cast<std::size_t>(parts_);
  const FlowTape& tape = sample.tape;
  for (auto step = tape.steps().rbegin(); step != tape.steps().rend(); ++step) {
    for (std::int32_t child = step->created; child < created; ++child) return_child(sample, child);
    over_parts(3 * products_of_tile_ * static_cast<double>(step->last - step->first), [&](std::int64_t part) {
      for (std::size_t i = step->first + static_cast<std::size_t>(part); i < step->last; i += stride)
        walk_back(sample, tape[i], piece + part);
    });
    for (std::int32_t child = step->created; child < created; ++child)
      for (int c = 0; c < 4; ++c) at_place(sample.born, 4, sample.flows.parent(child), c) = 0;
    created = step->created;
  }
}

void FlowPass::walk_back(const Sample& sample, const TileStep& step, std::int64_t share) {
  const std::int64_t tile = step.tile * kLanes;
  gradients_.walk_back(step,
                       {.position = data<float>(sample.position) + 3 * tile,
                        .energy = data<float>(sample.energy) + tile,
                        .hidden = data<float>(sample.hidden) + states_ * tile,
                        .born = data<float>(sample.born) + 4 * tile},
                       row(scratch_, share), row(sums_, share));
}

// What the loss says of a child at its birth is its parent's: of the state after the step, and of the place before.
void FlowPass::return_child(const Sample& sample, std::int64_t child) const {
  const std::int64_t parent = sample.flows.parent(child);
  for (std::int64_t c = 0; c < states_; ++c)
    at_place(sample.hidden, states_, parent, c) += at_place(sample.hidden, states_, child, c);
  for (int axis = 0; axis < 3; ++axis)
    at_place(sample.born, 4, parent, axis) += at_place(sample.position, 3, child, axis);
  float& energy =
      rules_.spawn == Spawn::kGate ? at_place(sample.born, 4, parent, 3) : at_place(sample.energy, 1, parent, 0);
  energy += at_place(sample.energy, 1, child, 0);
}

}  // namespace twinbench::energy_flow::flow_forward

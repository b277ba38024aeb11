// The two halves of a pass on the CPU, sample by sample and tile by tile.
#include "optimized/energy_flow/common/flow_pass.h"

#include <ATen/ATen.h>

#include <algorithm>

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

// One sample: its flows, their tape, and what the loss says of each flow, at its place.
struct FlowPass::Sample {
  Sample(const Rules& rules, const TileNetworks& networks, std::int64_t states, bool taped, bool everything)
      : flows(rules, networks, states), tape(networks, states, everything) {
    if (!taped) return;
    const std::int64_t places = tiles_of(rules) * kLanes;
    for (auto [field, channels] : {std::pair(&position, std::int64_t{3}), std::pair(&energy, std::int64_t{1}),
                                   std::pair(&hidden, states), std::pair(&born, std::int64_t{4})})
      *field = at::zeros({places * channels}, at::kFloat);
  }

  SampleFlows flows;
  FlowTape tape;
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
  for (std::int64_t b = 0; b < samples_; ++b)
    flows_.push_back(std::make_unique<Sample>(rules_, networks_, states_, taped_, setting.on("keep_everything")));
  const std::int64_t shares = pieces_of(samples_).number() * parts_;
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
  if (places_.tape_bytes.defined()) *data<std::int64_t>(places_.tape_bytes) = tape_bytes();
}

void FlowPass::backward(std::int64_t rows) {
  const Pieces pieces = pieces_of(rows);
  pieces.each([this](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    over_parts(0, [&](std::int64_t part) { std::fill_n(row(sums_, piece + part), sums_.size(1), 0.0f); });
    for (std::int64_t b = begin; b < end; ++b) backward_sample(b, piece);
    over_parts(0, [&](std::int64_t part) { gradients_.finish(row(sums_, piece + part)); });
  });
  // Fewer samples than there can be have fewer pieces.
  for (std::int64_t share = pieces.number() * parts_; share < sums_.size(0); ++share)
    std::fill_n(row(sums_, share), sums_.size(1), 0.0f);
  sum_columns<float>(sums_, all_sums_, all_sums_.size(0));
}

std::int64_t FlowPass::tape_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& sample : flows_) bytes += sample->tape.bytes();
  return bytes;
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
  const auto key = static_cast<std::uint32_t>(places_.sample_key.const_data_ptr<std::int64_t>()[b]);
  const auto stride = static_cast<std::size_t>(parts_);
  sample.tape.clear();
  flows.place(data<float>(places_.initial_energy) + b * rules_.cells());
  for (std::int32_t t = 0; flows.look(t), !flows.finished(); ++t) {
    if (taped_) begin_step(sample);
    over_parts(products_of_tile_ * static_cast<double>(flows.tiles()), [&](std::int64_t part) {
      float* const scratch = row(scratch_, piece + part);
      if (!taped_) {
        for (std::int64_t tile = part; tile < flows.tiles(); tile += parts_) flows.advance(tile, t, key, scratch);
        return;
      }
      const FlowTape::Step& step = sample.tape.steps().back();
      for (std::size_t i = step.first + static_cast<std::size_t>(part); i < step.last; i += stride)
        flows.advance(sample.tape[i].tile, t, key, scratch, &sample.tape[i]);
    });
    flows.settle(t);
  }
  if (places_.surface.defined()) flows.collect(data<float>(places_.surface) + b * rules_.cells());
  if (places_.margin.defined()) data<float>(places_.margin)[b] = tells_margin_ ? flows.margin() : 1.0f;
  if (places_.stats.defined())
    std::copy_n(flows.stats().data(), int{kStatistics}, data<std::int32_t>(places_.stats) + b * kStatistics);
}

// Room on the tape for every tile with a live flow.
void FlowPass::begin_step(Sample& sample) const {
  sample.tape.begin_step(sample.flows.created());
  for (std::int64_t tile = 0; tile < sample.flows.tiles(); ++tile)
    if (const std::uint32_t active = sample.flows.live_lanes(tile); active != 0) sample.tape.add(tile, active);
}

void FlowPass::backward_sample(std::int64_t b, std::int64_t piece) {
  Sample& sample = *flows_[static_cast<std::size_t>(b)];
  const auto stride = static_cast<std::size_t>(parts_);
  for (const at::Tensor* of : {&sample.position, &sample.energy, &sample.hidden, &sample.born})
    std::fill_n(data<float>(*of), of->numel(), 0.0f);
  sample.flows.uncollect(data<float>(places_.grad_surface) + b * rules_.cells(), data<float>(sample.energy));
  std::int32_t created = sample.flows.created();
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
  if (places_.grad_initial_energy.defined())
    std::copy_n(data<float>(sample.energy), rules_.placed(),
                data<float>(places_.grad_initial_energy) + b * rules_.cells());
  sample.tape.clear();
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

// energy_flow.flow_backward, optimized on the CPU: tiles of flows go forward in cache, which leaves their states on a
// tape, and back, computing again what lies between them. Nothing is allocated and nothing read back after the first
// run. Threads share the samples, or the tiles of a sample that is alone; sums of gradients do not depend on their
// number.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "optimized/common/rows.h"
#include "optimized/energy_flow/common/flow_tape.h"
#include "optimized/energy_flow/common/tile_gradients.h"
#include "src/energy_flow/common/flow_lives.h"
#include "src/energy_flow/common/flow_work.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

using namespace flow_forward;  // the flows are those of the forward pass

constexpr std::int64_t kMostPieces = 4;  // of the batch, or of the only sample's tiles, each with sums of its own

std::int64_t tiles_of(const Rules& rules) { return (rules.most_flows() + kLanes - 1) / kLanes; }

// One sample: its flows, their tape, and what the loss says of each flow, at its place.
struct Sample {
  Sample(const Rules& rules, const TileNetworks& networks, std::int64_t states, bool backward, bool everything)
      : flows(rules, networks, states), tape(networks, states, everything) {
    if (!backward) return;
    const std::int64_t places = tiles_of(rules) * kLanes;
    for (auto [field, channels] : {std::pair(&position, std::int64_t{3}), std::pair(&energy, std::int64_t{1}),
                                   std::pair(&hidden, states), std::pair(&born, std::int64_t{4})})
      *field = at::zeros({places * channels}, at::kFloat);
  }

  SampleFlows flows;
  FlowTape tape;
  at::Tensor position, energy, hidden, born;  // [tiles][channels][kLanes]
};

float& at_place(const at::Tensor& field, std::int64_t channels, std::int64_t place, std::int64_t channel) {
  return data<float>(field)[(place / kLanes * channels + channel) * kLanes + place % kLanes];
}

class CpuBackward final : public Runnable {
 public:
  CpuBackward(const NamedTensors& inputs, const Setting& setting)
      : setting_(setting),
        backward_(setting.backward()),
        tells_margin_(!sets_decisions_aside(setting)),
        states_(setting.size("layers") * setting.size("hidden")),
        rules_(setting, /*cleanup=*/0),
        networks_(inputs, setting),
        gradients_(inputs, setting, networks_),
        pieces_(Pieces::of(setting.size("samples"), 1, kMostPieces, 1)),
        parts_(setting.size("samples") == 1 ? std::clamp<std::int64_t>(tiles_of(rules_), 1, kMostPieces) : 1),
        products_of_tile_(kLanes * products_of_flow_step(setting)),
        initial_energy_(inputs["initial_energy"].contiguous()),
        sample_key_(inputs["sample_key"].contiguous()),
        results_(zero_results(setting)) {
    for (std::int64_t b = 0; b < setting.size("samples"); ++b)
      samples_.push_back(
          std::make_unique<Sample>(rules_, networks_, states_, backward_, setting.on("keep_everything")));
    const std::int64_t shares = pieces_.number() * parts_;
    scratch_ = at::empty({shares, gradients_.scratch_size()}, at::kFloat);
    if (!backward_) return;
    grad_surface_ = inputs["grad_surface"].contiguous();
    sums_ = at::zeros({shares, gradients_.layout().size}, at::kFloat);
    all_sums_ = at::zeros({gradients_.layout().size}, at::kFloat);
  }

  void run() override {
    pieces_.each([this](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) forward(b, piece);
    });
    // The baseline counts what else the output tells.
    data<std::int64_t>(results_["work"])[kTapeBytes] = tape_bytes();
    if (!backward_) return;
    pieces_.each([this](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      over_parts(0, [&](std::int64_t part) { std::fill_n(row(sums_, piece + part), sums_.size(1), 0.0f); });
      for (std::int64_t b = begin; b < end; ++b) backward(b, piece);
      over_parts(0, [&](std::int64_t part) { gradients_.finish(row(sums_, piece + part)); });
    });
    sum_columns<float>(sums_, all_sums_, all_sums_.size(0));
    data<std::int64_t>(results_["work"])[kTapeLeft] = tape_bytes();
  }

  NamedTensors outputs() override {
    if (backward_ && setting_.size("samples") > 0) unpack();
    return results_;
  }

 private:
  static float* row(const at::Tensor& of, std::int64_t i) { return data<float>(of) + i * of.size(1); }

  std::int64_t tape_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& sample : samples_) bytes += sample->tape.bytes();
    return bytes;
  }

  // A sample that is alone is cut into parts of its live tiles. Which part's sums a tile adds to is told by its place
  // among them, not by the threads. In a batch parts_ is 1, and scratch and sums are the piece's own.
  // products: multiplications of all parts.
  template <class Body>
  void over_parts(double products, const Body& body) const {
    constexpr double kWork = 2 << 20;  // that pay for waking a thread
    const double of_part = std::max(1.0, products / static_cast<double>(parts_));
    const auto grain = static_cast<std::int64_t>(std::clamp(kWork / of_part, 1.0, static_cast<double>(kMostPieces)));
    at::parallel_for(0, parts_, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t part = first; part < last; ++part) body(part);
    });
  }

  void forward(std::int64_t b, std::int64_t piece) {
    Sample& sample = *samples_[static_cast<std::size_t>(b)];
    SampleFlows& flows = sample.flows;
    const auto key = static_cast<std::uint32_t>(sample_key_.const_data_ptr<std::int64_t>()[b]);
    sample.tape.clear();
    flows.place(data<float>(initial_energy_) + b * rules_.cells());
    for (std::int32_t t = 0; flows.look(t), !flows.finished(); ++t) {
      if (backward_) begin_step(sample);
      over_parts(products_of(flows.tiles()), [&](std::int64_t part) {
        float* const scratch = row(scratch_, piece + part);
        if (!backward_) {
          for (std::int64_t tile = part; tile < flows.tiles(); tile += parts_) flows.advance(tile, t, key, scratch);
          return;
        }
        const FlowTape::Step& step = sample.tape.steps().back();
        for (std::size_t i = step.first + static_cast<std::size_t>(part); i < step.last; i += stride())
          flows.advance(sample.tape[i].tile, t, key, scratch, &sample.tape[i]);
      });
      flows.settle(t);
    }
    if (backward_) return;
    flows.collect(data<float>(results_["surface"]) + b * rules_.cells());
    data<float>(results_["margin"])[b] = tells_margin_ ? flows.margin() : 1.0f;
  }

  // Room on the tape for every tile with a live flow.
  void begin_step(Sample& sample) const {
    sample.tape.begin_step(sample.flows.created());
    for (std::int64_t tile = 0; tile < sample.flows.tiles(); ++tile)
      if (const std::uint32_t active = sample.flows.live_lanes(tile); active != 0) sample.tape.add(tile, active);
  }
  double products_of(std::int64_t tiles) const { return products_of_tile_ * static_cast<double>(tiles); }
  std::size_t stride() const { return static_cast<std::size_t>(parts_); }

  void backward(std::int64_t b, std::int64_t piece) {
    Sample& sample = *samples_[static_cast<std::size_t>(b)];
    for (const at::Tensor* of : {&sample.position, &sample.energy, &sample.hidden, &sample.born})
      std::fill_n(data<float>(*of), of->numel(), 0.0f);
    sample.flows.uncollect(data<float>(grad_surface_) + b * rules_.cells(), data<float>(sample.energy));
    std::int32_t created = sample.flows.created();
    const FlowTape& tape = sample.tape;
    for (auto step = tape.steps().rbegin(); step != tape.steps().rend(); ++step) {
      for (std::int32_t child = step->created; child < created; ++child) return_child(sample, child);
      over_parts(3 * products_of(static_cast<std::int64_t>(step->last - step->first)), [&](std::int64_t part) {
        for (std::size_t i = step->first + static_cast<std::size_t>(part); i < step->last; i += stride())
          walk_back(sample, tape[i], piece + part);
      });
      for (std::int32_t child = step->created; child < created; ++child)
        for (int c = 0; c < 4; ++c) at_place(sample.born, 4, sample.flows.parent(child), c) = 0;
      created = step->created;
    }
    const std::int64_t cells = rules_.cells();
    float* const start = data<float>(results_["grad_initial_energy"]) + b * cells;
    std::copy_n(data<float>(sample.energy), rules_.placed(), start);
    sample.tape.clear();
  }

  void walk_back(const Sample& sample, const TileStep& step, std::int64_t share) {
    const std::int64_t tile = step.tile * kLanes;
    gradients_.walk_back(step,
                         {.position = data<float>(sample.position) + 3 * tile,
                          .energy = data<float>(sample.energy) + tile,
                          .hidden = data<float>(sample.hidden) + states_ * tile,
                          .born = data<float>(sample.born) + 4 * tile},
                         row(scratch_, share), row(sums_, share));
  }

  // What the loss says of a child at its birth is its parent's: of the state after the step, and of the place before.
  void return_child(const Sample& sample, std::int64_t child) const {
    const std::int64_t parent = sample.flows.parent(child);
    for (std::int64_t c = 0; c < states_; ++c)
      at_place(sample.hidden, states_, parent, c) += at_place(sample.hidden, states_, child, c);
    for (int axis = 0; axis < 3; ++axis)
      at_place(sample.born, 4, parent, axis) += at_place(sample.position, 3, child, axis);
    float& energy =
        rules_.spawn == Spawn::kGate ? at_place(sample.born, 4, parent, 3) : at_place(sample.energy, 1, parent, 0);
    energy += at_place(sample.energy, 1, child, 0);
  }

  // From the sums to the parameters' own layouts.
  void unpack() {
    const GradientLayout& at = gradients_.layout();
    const Parameters& parameters = networks_.parameters();
    const HeadsPack& heads = parameters.heads;
    const std::int64_t width = heads.hidden;
    const auto part = [&](std::int64_t from, at::IntArrayRef shape) {
      return all_sums_.narrow(0, from, c10::multiply_integers(shape)).view(shape);
    };
    const auto lane_sum = [&](std::int64_t from, std::int64_t channels) {
      return part(from, {channels, kLanes}).sum(1);
    };
    const auto set = [&](const std::string& name, const at::Tensor& value) { results_["grad_" + name].copy_(value); };
    unpack_neuron(part(at.neuron, {parameters.neuron_layout.total()}), parameters.neuron_layout, results_);
    for (std::size_t l = 0; l < at.layers.size(); ++l) {
      const std::string number = "_" + std::to_string(l);
      const at::Tensor hidden = part(at.layers[l].hidden, {3 * width, width}),
                       bias = lane_sum(at.layers[l].bias, 4 * width);
      set("weight_input" + number, part(at.layers[l].input, {3 * width, parameters.layers[l].layout.input}));
      set("weight_hidden" + number, at::cat({hidden.narrow(0, width, 2 * width), hidden.narrow(0, 0, width)}));
      set("bias_input" + number, bias.narrow(0, width, 3 * width));
      set("bias_hidden" + number, at::cat({bias.narrow(0, width, 2 * width), bias.narrow(0, 0, width)}));
    }
    const std::int64_t trained = heads.gated() + (heads.gate ? 1 : 0);
    const at::Tensor first = part(at.first, {trained, width}), bias = lane_sum(at.first_bias, trained),
                     out_bias = lane_sum(at.out_bias, 4);
    set("energy_hidden_weight", first.narrow(0, 0, heads.energy));
    set("energy_hidden_bias", bias.narrow(0, 0, heads.energy));
    set("displacement_hidden_weight", first.narrow(0, heads.energy, heads.head));
    set("displacement_hidden_bias", bias.narrow(0, heads.energy, heads.head));
    set("energy_out_weight", part(at.energy_out, {1, heads.energy}));
    set("energy_out_bias", out_bias.narrow(0, 0, 1));
    set("displacement_out_weight", part(at.displacement_out, {3, heads.head}));
    set("displacement_out_bias", out_bias.narrow(0, 1, 3));
    if (!heads.gate) return;
    set("child_weight", first.narrow(0, heads.gated(), 1));
    set("child_bias", bias.narrow(0, heads.gated(), 1));
  }

  const Setting setting_;
  const bool backward_, tells_margin_;
  const std::int64_t states_;  // floats of a flow's hidden states
  const Rules rules_;
  const TileNetworks networks_;
  const TileGradients gradients_;
  const Pieces pieces_;
  const std::int64_t parts_;       // of a sample
  const double products_of_tile_;  // multiplications of its way through the networks
  const at::Tensor initial_energy_, sample_key_;
  at::Tensor grad_surface_;
  NamedTensors results_;
  std::vector<std::unique_ptr<Sample>> samples_;
  at::Tensor scratch_, sums_, all_sums_;  // [pieces * parts, floats] twice, [floats]
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuBackward>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_backward

// The vector loops of the way back; each is compiled for every instruction set.
#include "optimized/energy_flow/common/tile_gradients.h"

#include <ATen/ops/cat.h>

#include <algorithm>

#include "kernels/energy_flow/common/gru_gradients.h"
#include "kernels/energy_flow/common/heads_gradients.h"
#include "kernels/energy_flow/common/neuron_gradients.h"
#include "optimized/common/packing.h"
#include "optimized/common/tensors.h"
#include "src/common/cpu_clones.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

namespace tile = kernels::tile;
using energy_carrier::kGuardLimit;
using NeuronTile = simple_neuron::Tile<kLanes, float>;
using NeuronSums = simple_neuron::Gradients<kLanes, float>;

// Neuron and guarded input of a tile. A lane whose energy is no finite number gets a zero in its place, as what the
// guard stops must not come back as zero times NaN; nor do lanes without a flow have anything that is not finite.
TWINBENCH_CPU_CLONES void sense(const NeuronTile& neuron, const float* __restrict weights,
                                const float* __restrict position, const float* __restrict energy,
                                const float* __restrict usable, bool round, float* __restrict x) {
  for (int i = 0; i < 3 * kLanes; ++i) neuron.position()[i] = position[i];
  tile::round_operands<kLanes>(3, neuron.position(), round);
  for (int lane = 0; lane < kLanes; ++lane) neuron.energy()[lane] = usable[lane] != 0.0f ? energy[lane] : 0.0f;
  simple_neuron::forward(neuron, weights, round);
  const float* __restrict features = neuron.features();
  const int count = neuron.layout.outputs;
  for (int c = 0; c < count; ++c)
    for (int lane = 0; lane < kLanes; ++lane)
      x[c * kLanes + lane] = usable[lane] * kernels::guard(features[c * kLanes + lane], kGuardLimit);
  for (int lane = 0; lane < kLanes; ++lane) x[count * kLanes + lane] = kernels::guard(energy[lane], kGuardLimit);
}

// The state after the step, from gates that were kept, as the layer above takes it (unguarded) or as the heads do.
TWINBENCH_CPU_CLONES void next_states(const float* __restrict gates, const float* __restrict hidden, int count,
                                      bool guarded, float* __restrict next) {
  const float *update = gates + count, *candidate = gates + 2 * count;
  for (int i = 0; i < count; ++i) next[i] = energy_carrier::next_state(update[i], candidate[i], hidden[i]);
  if (guarded)
    for (int i = 0; i < count; ++i) next[i] = kernels::guard(next[i], kGuardLimit);
}

struct HeadsBack {
  int hidden, energy, head, child, trained;  // child: its row of what was kept; trained: rows with a gradient
  const float *first, *energy_out, *displacement_out, *out_bias;  // displacement_out: [head][3]
  carrier_heads::Rule<float> rule;
  bool round;  // operands; `carried` and the weights are some already
};
struct HeadsSums {
  float *first, *first_bias, *energy_out, *displacement_out, *out_bias;
};

// grad_energy [kLanes], grad_move [3][kLanes] of the displacement as it was added, grad_child [kLanes], children: one
// more than there are. grad_carried [hidden][kLanes].
TWINBENCH_CPU_CLONES void heads_back(const HeadsBack& p, const float* __restrict kept, const float* __restrict carried,
                                     const float* __restrict grad_energy, const float* __restrict grad_move,
                                     const float* __restrict grad_child, const float* __restrict children,
                                     float* __restrict activated, float* __restrict gradient, float* __restrict rows,
                                     const HeadsSums& sums, float* __restrict grad_carried) {
  const int gated = p.energy + p.head;
  for (int i = 0; i < gated * kLanes; ++i) activated[i] = kernels::gelu(kept[i]);
  tile::round_operands<kLanes>(gated, activated, p.round);
  float second[4 * kLanes], grad_second[4 * kLanes];
  tile::multiply<kLanes>(1, p.energy, p.energy_out, 1, 1, activated, p.out_bias, second);
  tile::multiply_rows<3, kLanes>(p.head, p.displacement_out, 1, 3, activated + p.energy * kLanes, p.out_bias + 1,
                                 second + kLanes);
  for (int lane = 0; lane < kLanes; ++lane) {
    const carrier_heads::Sums<float> sum = {
        .energy = second[lane],
        .displacement = {second[kLanes + lane], second[2 * kLanes + lane], second[3 * kLanes + lane]},
        .gate = 0,
        .child = p.rule.gate ? kept[p.child * kLanes + lane] : 0.0f};
    const carrier_heads::Vector3<float> move = {grad_move[lane], grad_move[kLanes + lane],
                                                grad_move[2 * kLanes + lane]};
    const carrier_heads::SumGradients<float> grad =
        carrier_heads::finish_backward(p.rule, sum, static_cast<std::int32_t>(children[lane]) - 1,
                                       {.energy = grad_energy[lane],
                                        .displacement = {0, 0, 0},
                                        .delta = move,
                                        .raw = {0, 0, 0},
                                        .child_energy = grad_child[lane]});
    grad_second[lane] = grad.energy;
    grad_second[kLanes + lane] = grad.displacement.x;
    grad_second[2 * kLanes + lane] = grad.displacement.y;
    grad_second[3 * kLanes + lane] = grad.displacement.z;
    if (p.rule.gate) gradient[gated * kLanes + lane] = grad.child;
  }
  tile::add_to_lane_sums<kLanes>(4, grad_second, sums.out_bias);
  tile::round_operands<kLanes>(4, grad_second, p.round);
  for (int j = 0; j < p.energy; ++j)
    for (int lane = 0; lane < kLanes; ++lane)
      gradient[j * kLanes + lane] =
          grad_second[lane] * p.energy_out[j] * kernels::gelu_derivative(kept[j * kLanes + lane]);
  for (int j = 0; j < p.head; ++j) {
    const float *w = p.displacement_out + 3 * j, *before = kept + (p.energy + j) * kLanes;
    float* const to = gradient + (p.energy + j) * kLanes;
    for (int lane = 0; lane < kLanes; ++lane) {
      const float all = grad_second[kLanes + lane] * w[0] + grad_second[2 * kLanes + lane] * w[1] +
                        grad_second[3 * kLanes + lane] * w[2];
      to[lane] = all * kernels::gelu_derivative(before[lane]);
    }
  }
  tile::add_products<kLanes>(1, p.energy, grad_second, activated, rows, sums.energy_out);
  tile::add_products<kLanes>(3, p.head, grad_second + kLanes, activated + p.energy * kLanes, rows,
                             sums.displacement_out);
  tile::add_to_lane_sums<kLanes>(p.trained, gradient, sums.first_bias);
  tile::round_operands<kLanes>(p.trained, gradient, p.round);
  tile::add_products<kLanes>(p.trained, p.hidden, gradient, carried, rows, sums.first);
  tile::multiply<kLanes>(p.hidden, p.trained, p.first, 1, p.hidden, gradient, nullptr, grad_carried);
}

struct LayerBack {
  int input, hidden;
  bool top;
  const float *weight_input, *weight_hidden;
};
struct LayerSums {
  float *input, *hidden, *bias;
};

// `stored` [hidden][kLanes] is the gradient of the stored state, `above` that of what went up; `stored` becomes that of
// the state before. `sums` is scratch for the gradients of the gates' sums, [4 * hidden][kLanes].
TWINBENCH_CPU_CLONES void layer_back(const LayerBack& p, const float* __restrict gates, const float* __restrict hidden,
                                     const float* __restrict x, const float* __restrict above, float* __restrict stored,
                                     float* __restrict sums, float* __restrict rows, const LayerSums& to,
                                     float* __restrict below, float* __restrict before) {
  const int count = p.hidden * kLanes;
  const float* __restrict reset = gates;
  const float* __restrict update = gates + count;
  const float* __restrict candidate = gates + 2 * count;
  const float* __restrict from_hidden = gates + 3 * count;
  for (int i = 0; i < count; ++i) {
    const energy_carrier::ChannelGradient<float> grad = energy_carrier::guarded_channel_gradient(
        reset[i], update[i], candidate[i], from_hidden[i], hidden[i], stored[i], above[i], p.top);
    sums[i] = grad.candidate_hidden;
    sums[count + i] = grad.reset_sum;
    sums[2 * count + i] = grad.update_sum;
    sums[3 * count + i] = grad.candidate_input;
    stored[i] = grad.hidden;
  }
  const int gates_of = 3 * p.hidden;
  tile::add_to_lane_sums<kLanes>(4 * p.hidden, sums, to.bias);
  tile::add_products<kLanes>(gates_of, p.input, sums + count, x, rows, to.input);
  tile::add_products<kLanes>(gates_of, p.hidden, sums, hidden, rows, to.hidden);
  tile::multiply<kLanes>(p.input, gates_of, p.weight_input, 1, p.input, sums + count, nullptr, below);
  tile::multiply<kLanes>(p.hidden, gates_of, p.weight_hidden, 1, p.hidden, sums, nullptr, before);
  for (int i = 0; i < count; ++i) stored[i] += before[i];
}

// grad_x [features + 1][kLanes] of the guarded input.
TWINBENCH_CPU_CLONES void neuron_back(const NeuronTile& neuron, const float* weights, const float* __restrict energy,
                                      const float* __restrict usable, const float* __restrict grad_x, bool round,
                                      const NeuronSums& sums, float* __restrict position,
                                      float* __restrict grad_energy) {
  float* __restrict features = neuron.features();
  const int count = neuron.layout.outputs;
  for (int c = 0; c < count; ++c)
    for (int lane = 0; lane < kLanes; ++lane) {
      const int i = c * kLanes + lane;
      features[i] = usable[lane] != 0.0f ? kernels::guard_gradient(features[i], kGuardLimit, grad_x[i]) : 0.0f;
    }
  simple_neuron::walk_back(neuron, weights, round, sums);
  for (int i = 0; i < 3 * kLanes; ++i) position[i] = neuron.position_gradient()[i];
  for (int lane = 0; lane < kLanes; ++lane)
    grad_energy[lane] = neuron.energy_gradient()[lane] +
                        kernels::guard_gradient(energy[lane], kGuardLimit, grad_x[count * kLanes + lane]);
}

std::int64_t lanes(std::int64_t channels) { return channels * kLanes; }

}  // namespace

GradientLayout::GradientLayout(const Parameters& parameters) {
  std::int64_t at = 0;
  const auto take = [&](std::int64_t count) {
    const std::int64_t here = at;
    at += (count + kLanes - 1) / kLanes * kLanes;
    return here;
  };
  const HeadsPack& heads = parameters.heads;
  const std::int64_t trained = heads.gated() + (heads.gate ? 1 : 0);
  neuron = take(parameters.neuron_layout.total());
  neuron_lanes = take(NeuronSums::lane_sum_size(parameters.neuron_layout));
  for (const RecurrentPack& layer : parameters.layers) {
    const std::int64_t gates = 3 * layer.layout.hidden, input = take(gates * layer.layout.input);
    const std::int64_t hidden = take(gates * layer.layout.hidden);
    layers.push_back({input, hidden, take(lanes(4 * layer.layout.hidden))});
  }
  first = take(trained * heads.hidden), first_bias = take(lanes(trained));
  energy_out = take(heads.energy), displacement_out = take(3 * heads.head), out_bias = take(lanes(4));
  size = at;
}

// What one tile needs on its way back, after the networks' own scratch.
struct TileGradients::Scratch {
  float *usable, *state, *x, *hidden, *gates, *heads, *carried, *activated, *gradient, *sums, *rows, *above, *below,
      *before, *moved, *stored;
  std::int64_t size;

  Scratch(const TileGradients& g, float* base) {
    std::int64_t at = g.networks_.scratch_size();
    const auto take = [&](std::int64_t count) {
      float* const here = base == nullptr ? nullptr : base + at;
      at += count;
      return here;
    };
    const std::int64_t layers = static_cast<std::int64_t>(g.layers_.size()), rows_kept = g.networks_.kept_heads();
    const std::int64_t widest = std::max(
        {g.features_ + 1, g.width_, g.parameters_.heads.gated(), std::int64_t{g.parameters_.neuron_layout.hidden}});
    usable = take(kLanes), state = take(lanes(4)), x = take(lanes(widest));
    hidden = take(lanes(layers * g.width_)), gates = take(g.networks_.kept_gates()), heads = take(rows_kept);
    carried = take(lanes(g.width_)), activated = take(rows_kept), gradient = take(lanes(g.trained_));
    sums = take(lanes(4 * g.width_)), rows = take(lanes(widest)), above = take(lanes(widest));
    below = take(lanes(widest)), before = take(lanes(g.width_)), moved = take(lanes(4));
    stored = take(lanes(layers * g.width_));
    size = at;
  }
};

TileGradients::TileGradients(const NamedTensors& inputs, const Setting& setting, const TileNetworks& networks)
    : networks_(networks),
      parameters_(networks.parameters()),
      layout_(parameters_),
      width_(setting.size("hidden")),
      features_(setting.size("features")),
      trained_(parameters_.heads.gated() + (parameters_.heads.gate ? 1 : 0)),
      round_(rounds_operands(setting)) {
  for (std::size_t l = 0; l < parameters_.layers.size(); ++l) {
    const std::string number = std::to_string(l);
    const at::Tensor& hidden = inputs["weight_hidden_" + number];
    layers_.push_back({inputs["weight_input_" + number].contiguous(),
                       at::cat({hidden.narrow(0, 2 * width_, width_), hidden.narrow(0, 0, 2 * width_)})});
  }
  std::vector<at::Tensor> first = {inputs["energy_hidden_weight"], inputs["displacement_hidden_weight"]};
  if (parameters_.heads.gate) first.push_back(inputs["child_weight"]);
  first_ = operand_of(at::cat(first), setting);
}

std::vector<at::Tensor> TileGradients::packs() const {
  std::vector<at::Tensor> all = {first_};
  for (const Layer& layer : layers_) all.insert(all.end(), {layer.input, layer.hidden});
  return all;
}

std::int64_t TileGradients::scratch_size() const { return Scratch(*this, nullptr).size; }

void TileGradients::walk_back(const TileStep& step, const TileAdjoint& adjoint, float* scratch, float* sums) const {
  const Scratch s(*this, scratch);
  const HeadsPack& heads = parameters_.heads;
  const std::int64_t layers = static_cast<std::int64_t>(layers_.size()), states = layers * width_;
  const auto active = [&](int lane) { return (step.active >> lane & 1u) != 0; };
  // Lanes without a flow are zeros.
  const bool full = step.active + 1u == 1u << kLanes;
  const auto load = [&](const float* from, std::int64_t channels, float* to) {
    if (full) return void(std::copy_n(from, lanes(channels), to));
    for (std::int64_t c = 0; c < channels; ++c)
      for (int lane = 0; lane < kLanes; ++lane) to[c * kLanes + lane] = active(lane) ? from[c * kLanes + lane] : 0.0f;
  };
  load(step.state, 4, s.state);
  if (networks_.stores_bf16()) StateField::widen(step.hidden, states, s.stored);
  load(networks_.stores_bf16() ? s.stored : reinterpret_cast<const float*>(step.hidden), states, s.hidden);
  const float* const energy = s.state + lanes(3);
  for (int lane = 0; lane < kLanes; ++lane) s.usable[lane] = flow_movement::is_finite(energy[lane]) ? 1.0f : 0.0f;

  const NeuronTile neuron{parameters_.neuron_layout, scratch};
  sense(neuron, data<float>(parameters_.neuron), s.state, energy, s.usable, round_, s.x);
  const float *gates = step.kept.gates, *first_sums = step.kept.heads;
  if (!step.kept.is_kept()) {
    TileIntent intent;
    std::copy_n(s.x, lanes(features_ + 1), networks_.input(scratch));
    std::copy_n(s.hidden, lanes(states), s.stored);
    networks_.carry(s.stored, scratch, intent, {.gates = s.gates, .heads = s.heads});
    gates = s.gates, first_sums = s.heads;
  }

  // The reflection's slopes; what is left is the gradient of the displacement and, directly, of the position before.
  load(adjoint.position, 3, s.moved);
  for (int i = 0; i < 2 * kLanes; ++i) s.moved[i] *= step.replayed[i];
  load(adjoint.energy, 1, s.moved + lanes(3));
  load(adjoint.hidden, states, s.stored);
  const auto layer_gates = [&](std::int64_t l) { return gates + l * lanes(4 * width_); };
  next_states(layer_gates(layers - 1), s.hidden + (layers - 1) * lanes(width_), static_cast<int>(lanes(width_)), true,
              s.carried);
  tile::round_operands<kLanes>(static_cast<int>(width_), s.carried, round_);
  heads_back({.hidden = static_cast<int>(width_),
              .energy = static_cast<int>(heads.energy),
              .head = static_cast<int>(heads.head),
              .child = static_cast<int>(heads.child()),
              .trained = static_cast<int>(trained_),
              .first = data<float>(first_),
              .energy_out = data<float>(heads.energy_out),
              .displacement_out = data<float>(heads.displacement_out),
              .out_bias = data<float>(heads.out_bias),
              .rule = parameters_.heads_rule,
              .round = round_},
             first_sums, s.carried, s.moved + lanes(3), s.moved, adjoint.born + lanes(3), step.replayed + lanes(2),
             s.activated, s.gradient, s.rows,
             {sums + layout_.first, sums + layout_.first_bias, sums + layout_.energy_out,
              sums + layout_.displacement_out, sums + layout_.out_bias},
             s.above);
  float *above = s.above, *below = s.below;
  for (std::int64_t l = layers; l-- > 0;) {
    const RecurrentLayout& shape = parameters_.layers[static_cast<std::size_t>(l)].layout;
    const Layer& layer = layers_[static_cast<std::size_t>(l)];
    const GradientLayout::Layer& at = layout_.layers[static_cast<std::size_t>(l)];
    const float* const hidden = s.hidden + l * lanes(width_);
    if (l > 0)
      next_states(layer_gates(l - 1), hidden - lanes(width_), static_cast<int>(lanes(width_)), false, s.carried);
    layer_back({.input = static_cast<int>(shape.input),
                .hidden = static_cast<int>(width_),
                .top = l == layers - 1,
                .weight_input = data<float>(layer.input),
                .weight_hidden = data<float>(layer.hidden)},
               layer_gates(l), hidden, l > 0 ? s.carried : s.x, above, s.stored + l * lanes(width_), s.sums, s.rows,
               {sums + at.input, sums + at.hidden, sums + at.bias}, below, s.before);
    std::swap(above, below);
  }
  float place[3 * kLanes], grad_energy[kLanes];
  neuron_back(neuron, data<float>(parameters_.neuron), energy, s.usable, above, round_,
              {parameters_.neuron_layout, sums + layout_.neuron, sums + layout_.neuron_lanes, s.rows}, place,
              grad_energy);

  for (int i = 0; i < 3 * kLanes; ++i) s.moved[i] += place[i] + adjoint.born[i];
  const auto store = [&](const float* from, std::int64_t channels, float* to) {
    if (full) return void(std::copy_n(from, lanes(channels), to));
    for (std::int64_t c = 0; c < channels; ++c)
      for (int lane = 0; lane < kLanes; ++lane)
        if (active(lane)) to[c * kLanes + lane] = from[c * kLanes + lane];
  };
  store(s.moved, 3, adjoint.position);
  store(grad_energy, 1, adjoint.energy);
  store(s.stored, states, adjoint.hidden);
}

void TileGradients::finish(float* sums) const {
  NeuronSums{parameters_.neuron_layout, sums + layout_.neuron, sums + layout_.neuron_lanes, nullptr}.finish();
}

}  // namespace twinbench::energy_flow::flow_forward

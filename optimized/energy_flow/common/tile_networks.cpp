// The vector loops of a tile's networks; each is compiled for every instruction set.
#include "optimized/energy_flow/common/tile_networks.h"

#include <algorithm>

#include "kernels/energy_flow/common/gru.h"
#include "kernels/energy_flow/common/neuron_tile.h"
#include "optimized/common/rows.h"
#include "optimized/common/tensors.h"
#include "src/common/cpu_clones.h"
#include "src/stored_states.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

namespace tile = kernels::tile;

// Features and energy, guarded, as the first recurrent layer multiplies them: x [features + 1][kLanes].
TWINBENCH_CPU_CLONES void neuron_tile(const simple_neuron::Layout& layout, const float* weights, const float* position,
                                      const float* energy, bool round, float* scratch, float* __restrict x) {
  const simple_neuron::Tile<kLanes, float> neuron{layout, scratch};
  for (int i = 0; i < 3 * kLanes; ++i) neuron.position()[i] = position[i];
  tile::round_operands<kLanes>(3, neuron.position(), round);
  for (int lane = 0; lane < kLanes; ++lane) neuron.energy()[lane] = energy[lane];
  simple_neuron::forward(neuron, weights, round);
  const float* __restrict features = neuron.features();
  const int count = layout.outputs * kLanes;
  for (int i = 0; i < count; ++i) x[i] = kernels::guard(features[i], energy_carrier::kGuardLimit);
  for (int lane = 0; lane < kLanes; ++lane) x[count + lane] = kernels::guard(energy[lane], energy_carrier::kGuardLimit);
}

// Adds coefficient * value to six of a pair's sums, rows first .. first + 3 and two from last on.
template <int kLast>
TWINBENCH_HOST_DEVICE void add_products(std::int64_t inner, const float* __restrict coefficient,
                                        const float* __restrict values, float (&sum)[kPairSums][kLanes]) {
  for (std::int64_t j = 0; j < inner; ++j) {
#pragma GCC unroll 6
    for (int r = 0; r < 6; ++r) {
      const float c = coefficient[6 * j + r];
      float* const row = sum[r < 4 ? r : r - 4 + kLast];
#pragma GCC unroll 1
      for (int lane = 0; lane < kLanes; ++lane)
        row[lane] = kernels::multiply_add(c, values[j * kLanes + lane], row[lane]);
    }
  }
}

// x [input][kLanes], hidden [width][kLanes]: the next state, guarded as it is stored and as the layer above takes it.
// kKeep: `kept` gets the gates.
template <bool kKeep>
TWINBENCH_HOST_DEVICE void recurrent_layer(const RecurrentLayout& layout, const float* __restrict weights,
                                           const float* __restrict biases, const float* __restrict x,
                                           const float* __restrict hidden, float* __restrict next,
                                           float* __restrict above, float* __restrict kept) {
  const std::int64_t pairs = layout.pairs(), size = layout.pair_size(), apart = layout.hidden * kLanes;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    float sum[kPairSums][kLanes];
    for (int r = 0; r < kPairSums; ++r)
      for (int lane = 0; lane < kLanes; ++lane) sum[r][lane] = biases[pair * kPairSums + r];
    add_products<4>(layout.input, weights + pair * size, x, sum);
    add_products<6>(layout.hidden, weights + pair * size + 6 * layout.input, hidden, sum);
    const int channels = 2 * pair + 1 < layout.hidden ? 2 : 1;
    for (int k = 0; k < channels; ++k) {
      const std::int64_t at = (2 * pair + k) * kLanes;
      for (int lane = 0; lane < kLanes; ++lane) {
        const energy_carrier::Channel<float> channel = energy_carrier::gru_channel(
            sum[k][lane], sum[2 + k][lane], sum[4 + k][lane], sum[6 + k][lane], hidden[at + lane]);
        above[at + lane] = channel.next;
        next[at + lane] = kernels::guard(channel.next, energy_carrier::kGuardLimit);
        if (!kKeep) continue;
        kept[at + lane] = channel.reset;
        kept[apart + at + lane] = channel.update;
        kept[2 * apart + at + lane] = channel.candidate;
        kept[3 * apart + at + lane] = sum[6 + k][lane];
      }
    }
  }
}
TWINBENCH_CPU_CLONES void recurrent_tile(const RecurrentLayout& layout, const float* weights, const float* biases,
                                         const float* x, const float* hidden, float* next, float* above) {
  recurrent_layer<false>(layout, weights, biases, x, hidden, next, above, nullptr);
}
TWINBENCH_CPU_CLONES void kept_recurrent_tile(const RecurrentLayout& layout, const float* weights, const float* biases,
                                              const float* x, const float* hidden, float* next, float* above,
                                              float* kept) {
  recurrent_layer<true>(layout, weights, biases, x, hidden, next, above, kept);
}

struct HeadsPointers {
  int hidden, energy, head, gated, child, rows;
  bool gate, round;
  const float *first, *first_bias, *energy_out, *displacement_out, *gate_out, *out_bias;
};

// carried [hidden][kLanes], an operand; `activated` is scratch, [rows][kLanes]. `kept`, where given, gets what it was
// before GELU.
TWINBENCH_CPU_CLONES void heads_tile(const HeadsPointers& heads, const float* carried, float* __restrict activated,
                                     float* __restrict energy, float* __restrict displacement, float* __restrict gate,
                                     float* __restrict child, float* kept) {
  tile::multiply<kLanes>(heads.rows, heads.hidden, heads.first, 1, heads.rows, carried, heads.first_bias, activated);
  if (kept != nullptr) std::copy_n(activated, heads.rows * kLanes, kept);
  const int count = heads.child * kLanes;
  if (heads.gate)
    for (int lane = 0; lane < kLanes; ++lane) child[lane] = activated[count + lane];
  for (int i = 0; i < count; ++i) activated[i] = kernels::gelu(activated[i]);
  tile::round_operands<kLanes>(heads.child, activated, heads.round);
  tile::multiply<kLanes>(1, heads.energy, heads.energy_out, 1, 1, activated, heads.out_bias, energy);
  tile::multiply_rows<3, kLanes>(heads.head, heads.displacement_out, 1, 3, activated + heads.energy * kLanes,
                                 heads.out_bias + 1, displacement);
  if (heads.gate)
    tile::multiply<kLanes>(1, heads.head, heads.gate_out, 1, 1, activated + heads.gated * kLanes, heads.out_bias + 4,
                           gate);
}

}  // namespace

TileNetworks::TileNetworks(const NamedTensors& inputs, const Setting& setting)
    : parameters_(inputs, setting),
      width_(setting.size("hidden")),
      features_(setting.size("features")),
      round_(rounds_operands(setting)),
      stores_(keeps_bf16(setting)) {}

std::int64_t TileNetworks::scratch_size() const {
  const std::int64_t widest = std::max(features_ + 1, width_);
  return simple_neuron::Tile<kLanes, float>::size(parameters_.neuron_layout) +
         kLanes * (2 * widest + width_ + parameters_.heads.rows()) + opened_size();
}
std::int64_t TileNetworks::opened_size() const {
  return stores_ ? static_cast<std::int64_t>(parameters_.layers.size()) * width_ * kLanes : 0;
}

std::int64_t TileNetworks::kept_gates() const {
  return static_cast<std::int64_t>(parameters_.layers.size()) * 4 * width_ * kLanes;
}
std::int64_t TileNetworks::kept_heads() const { return parameters_.heads.rows() * kLanes; }

float* TileNetworks::input(float* scratch) const {
  return scratch + simple_neuron::Tile<kLanes, float>::size(parameters_.neuron_layout);
}

void TileNetworks::advance(const float* position, const float* energy, float* hidden, float* scratch,
                           TileIntent& intent, const TileKept& kept) const {
  neuron_tile(parameters_.neuron_layout, data<float>(parameters_.neuron), position, energy, round_, scratch,
              input(scratch));
  carry(hidden, scratch, intent, kept);
}

void TileNetworks::carry(float* hidden, float* scratch, TileIntent& intent, const TileKept& kept) const {
  const std::int64_t widest = std::max(features_ + 1, width_);
  float *x = input(scratch), *gates = kept.gates;
  float* above = x + widest * kLanes;
  float* const next = above + widest * kLanes;
  float* const activated = next + width_ * kLanes;
  for (const RecurrentPack& layer : parameters_.layers) {
    const float *weights = data<float>(layer.weights), *biases = data<float>(layer.biases);
    if (kept.is_kept()) {
      kept_recurrent_tile(layer.layout, weights, biases, x, hidden, next, above, gates);
      gates += 4 * width_ * kLanes;
    } else {
      recurrent_tile(layer.layout, weights, biases, x, hidden, next, above);
    }
    std::copy_n(next, width_ * kLanes, hidden);
    if (stores_) round_in_place(hidden, width_ * kLanes);
    hidden += width_ * kLanes;
    std::swap(x, above);
  }
  const HeadsPack& heads = parameters_.heads;
  const float* const carried = next;  // as it is before it is stored
  if (round_) round_in_place(next, width_ * kLanes);
  heads_tile({.hidden = static_cast<int>(heads.hidden),
              .energy = static_cast<int>(heads.energy),
              .head = static_cast<int>(heads.head),
              .gated = static_cast<int>(heads.gated()),
              .child = static_cast<int>(heads.child()),
              .rows = static_cast<int>(heads.rows()),
              .gate = heads.gate,
              .round = round_,
              .first = data<float>(heads.first),
              .first_bias = data<float>(heads.first_bias),
              .energy_out = data<float>(heads.energy_out),
              .displacement_out = data<float>(heads.displacement_out),
              .gate_out = data<float>(heads.gate_out),
              .out_bias = data<float>(heads.out_bias)},
             carried, activated, intent.energy, intent.displacement, intent.gate, intent.child, kept.heads);
}

}  // namespace twinbench::energy_flow::flow_forward

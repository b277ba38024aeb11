// Simple neuron kernels on the host executor, in every thread order, against the scalar (one-lane) form; and that form
// against central differences.
#include <utility>

#include "harness/simt/kernel_testing.h"
#include "kernels/common/column_sums.h"
#include "kernels/common/grid.h"
#include "kernels/energy_flow/common/neuron_gradients.h"
#include "kernels/energy_flow/simple_neuron/backward_kernel.h"
#include "kernels/energy_flow/simple_neuron/many_kernel.h"
#include "kernels/energy_flow/simple_neuron/tile_kernel.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

using simt::Buffer;
using simt::expect_close_to_scale;
using simt::Floats;
using simt::spread;

struct Problem {
  Layout layout;
  std::int64_t flows;
  bool round;
  Floats weights, position, energy, grad_features;

  Problem(int hidden, int outputs, std::int64_t flow_count, bool bf16)
      : layout{hidden, outputs},
        flows(flow_count),
        round(bf16),
        weights(spread(layout.total(), 1)),
        position(spread(flows * 3, 2)),
        energy(spread(flows, 3, 2)),
        grad_features(spread(flows * outputs, 4, 2)) {
    const std::pair<int, int> matrices[] = {{layout.coordinate_weight(), layout.coordinate_bias()},
                                            {layout.weight(0), layout.bias(0)},
                                            {layout.weight(1), layout.bias(1)},
                                            {layout.weight_out(), layout.bias_out()}};
    for (const auto& [begin, end] : matrices)
      for (int i = begin; i < end; ++i) weights[i] = operand(weights[i], round);
  }
};

struct Result {
  Floats features, grad_position, grad_energy, grad_weights;
};

// One flow after another, one lane.
Result scalar(const Problem& p) {
  const int outputs = p.layout.outputs;
  Floats scratch(Tile<1>::size(p.layout)), lane_sums(Gradients<1>::lane_sum_size(p.layout));
  Floats rows(Gradients<1>::rows_size(p.layout));
  Result result;
  result.grad_weights.resize(p.layout.total());
  const Tile<1> tile{p.layout, scratch.data()};
  const Gradients<1> sums{p.layout, result.grad_weights.data(), lane_sums.data(), rows.data()};
  for (std::int64_t flow = 0; flow < p.flows; ++flow) {
    for (int i = 0; i < 3; ++i) tile.position()[i] = operand(p.position[flow * 3 + i], p.round);
    *tile.energy() = p.energy[flow];
    forward(tile, p.weights.data(), p.round);
    result.features.insert(result.features.end(), tile.features(), tile.features() + outputs);
    *tile.energy() = p.energy[flow];
    std::copy_n(p.grad_features.begin() + flow * outputs, outputs, tile.features());
    backward(tile, p.weights.data(), p.round, sums);
    result.grad_position.insert(result.grad_position.end(), tile.position_gradient(), tile.position_gradient() + 3);
    result.grad_energy.push_back(*tile.energy_gradient());
  }
  sums.finish();
  return result;
}

// Sum over flows and outputs of gradient * feature, in the given weights and inputs.
double loss(const Problem& p) {
  const Result result = scalar(p);
  double sum = 0;
  for (std::size_t i = 0; i < result.features.size(); ++i)
    sum += static_cast<double>(p.grad_features[i]) * static_cast<double>(result.features[i]);
  return sum;
}

struct Case {
  int hidden, outputs;
  std::int64_t flows;
  bool round;
};

class SimpleNeuronKernel : public testing::TestWithParam<Case> {
 protected:
  const Problem p{GetParam().hidden, GetParam().outputs, GetParam().flows, GetParam().round};
  const Result expected = scalar(p);
  const Buffer weights{p.weights}, position{p.position}, energy{p.energy}, gradient{p.grad_features};

  Arguments<float> arguments() const {
    return {.layout = p.layout,
            .round = p.round,
            .flows = p.flows,
            .weights = weights.data(),
            .position = {position.data(), 3, 1},
            .energy = {energy.data(), 1, 1},
            .grad_features = {gradient.data(), p.layout.outputs, 1}};
  }
};

TEST_P(SimpleNeuronKernel, ForwardMatchesTheScalarForm) {
  for (const simt::Order order : simt::kAllOrders)
    for (const std::int64_t blocks : {groups_of(p.flows), std::int64_t{1}}) {
      const Buffer features(expected.features.size());
      Arguments<float> a = arguments();
      a.features = features.data();
      simt::run_clean(Forward{}, blocks, kThreads, order, a, forward_shared_bytes(p.layout));
      expect_close_to_scale(features, expected.features, p.round ? 1e-2 : 1e-5);
    }
}

TEST_P(SimpleNeuronKernel, BackwardMatchesTheScalarForm) {
  const std::int64_t blocks = std::min<std::int64_t>(2, groups_of(p.flows));
  const std::int32_t total = p.layout.total();
  for (const simt::Order order : simt::kAllOrders) {
    const Buffer grad_position(expected.grad_position.size()), grad_energy(expected.grad_energy.size());
    const Buffer partial(blocks * p.layout.padded()), grad_weights(total);
    Arguments<float> a = arguments();
    a.grad_position = grad_position.data();
    a.grad_energy = grad_energy.data();
    a.partial = partial.data();
    simt::run_clean(Backward{}, blocks, kThreads, order, a, backward_shared_bytes(p.layout));
    simt::run_clean(kernels::ColumnSums{}, kernels::blocks_of(total, kernels::kSumColumns), kernels::kSumThreads, order,
                    kernels::ColumnSumArguments{.rows = partial.data(),
                                                .sums = grad_weights.data(),
                                                .count = blocks,
                                                .columns = total,
                                                .stride = p.layout.padded()});
    const double tolerance = p.round ? 3e-2 : 2e-5;
    expect_close_to_scale(grad_position, expected.grad_position, tolerance, "grad_position");
    expect_close_to_scale(grad_energy, expected.grad_energy, tolerance, "grad_energy");
    expect_close_to_scale(grad_weights, expected.grad_weights, tolerance, "grad_weights");
  }
}

// As set-up makes it of the packed weights.
Floats packed_for_tiles(const Floats& weights) {
  const auto value = [&](int source) { return source < 0 ? 0.0f : weights[static_cast<std::size_t>(source)]; };
  Floats pack;
  for (int i = 0; i < TilePack::kFloats; ++i) pack.push_back(value(TilePack::source_of_float(i)));
  for (int i = 0; i < TilePack::kValues; i += 2)
    pack.push_back(kernels::float_of_bits(
        kernels::bf16_pair(value(TilePack::source_of_value(i)), value(TilePack::source_of_value(i + 1)))));
  return pack;
}

struct ManyFlows {
  Problem p;
  Buffer tile_pack{packed_for_tiles(p.weights), "tile pack", 16};
  Buffer weights{p.weights, "weights", 16}, position{p.position, "position", 16}, energy{p.energy, "energy", 16};
  Buffer features{static_cast<std::size_t>(p.flows) * kManyOutputs, "features", 16};

  ManyFlows(std::int64_t flows, bool round) : p(kManyHidden, kManyOutputs, flows, round) {}
  Arguments<float> arguments(const Buffer& to) const {
    return {.layout = p.layout,
            .round = p.round,
            .flows = p.flows,
            .weights = weights.data(),
            .tile_pack = tile_pack.data(),
            .position = {position.data(), 3, 1},
            .energy = {energy.data(), 1, 1},
            .features = to.data()};
  }
};

// The kernel for many flows gives the bits of the one for few, also where a block takes several groups.
TEST(SimpleNeuronManyFlows, GivesTheSameBits) {
  for (const std::int64_t flows : {1, 33, 128, 300}) {
    const ManyFlows m(flows, false);
    simt::run_clean(Forward{}, groups_of(flows), kThreads, simt::Order::kForward, m.arguments(m.features),
                    forward_shared_bytes(m.p.layout));
    for (const simt::Order order : simt::kAllOrders)
      for (const std::int64_t blocks : {many_blocks(flows), std::int64_t{1}}) {
        const Buffer many(m.features.size(), "features", 16);
        simt::run_clean(ForwardMany{}, blocks, kThreads, order, m.arguments(many), many_shared_bytes());
        for (std::size_t i = 0; i < many.size(); ++i)
          ASSERT_EQ(kernels::bits_of(many[i]), kernels::bits_of(m.features[i])) << flows << " flows, element " << i;
      }
  }
}

// On tensor cores sums run in another order: near the scalar form, and the same bits in every order of threads, however
// flows are divided among blocks.
TEST(SimpleNeuronManyFlows, TilesMatchTheScalarForm) {
  for (const std::int64_t flows : {1, 31, 33, 300}) {
    const ManyFlows m(flows, true);
    const Floats expected = scalar(m.p).features;
    Floats first;
    for (const simt::Order order : simt::kAllOrders)
      for (const std::int64_t blocks : {tile_blocks(flows), std::int64_t{1}}) {
        const Buffer tiles(expected.size(), "features", 16);
        simt::run_clean(ForwardTiles{}, blocks, kTileThreads, order, m.arguments(tiles), tile_shared_bytes());
        expect_close_to_scale(tiles, expected, 1e-2);
        if (first.empty()) first = tiles.values();
        for (std::size_t i = 0; i < tiles.size(); ++i)
          ASSERT_EQ(kernels::bits_of(tiles[i]), kernels::bits_of(first[i])) << flows << " flows, element " << i;
      }
  }
}

TEST(SimpleNeuronManyFlows, NanEnergyStaysInItsOwnFlowOfATile) {
  ManyFlows m(40, true);
  m.energy[17] = std::nanf("");
  simt::run_clean(ForwardTiles{}, 1, kTileThreads, simt::Order::kShuffled, m.arguments(m.features),
                  tile_shared_bytes());
  for (std::size_t i = 0; i < m.features.size(); ++i)
    ASSERT_EQ(std::isnan(m.features[i]), i / kManyOutputs == 17) << "element " << i;
}

TEST(SimpleNeuronManyFlows, BlocksTakeAllGroupsEvenly) {
  EXPECT_EQ(tile_blocks(40000), 179);
  EXPECT_EQ(tile_blocks(0), 0);
  for (const std::int64_t flows : {4096, 40000, 1000000}) {
    const std::int64_t each =
        (tile_groups(flows) + tile_blocks(flows) * kTileWarps - 1) / (tile_blocks(flows) * kTileWarps);
    EXPECT_GE(tile_blocks(flows) * kTileWarps * each, tile_groups(flows)) << flows;
    EXPECT_LE(tile_blocks(flows), kMostManyBlocks) << flows;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, SimpleNeuronKernel,
                         testing::Values(Case{4, 3, 5, false}, Case{32, 64, 16, false}, Case{33, 65, 17, false},
                                         Case{29, 31, 35, false}, Case{32, 64, 1, false}, Case{32, 64, 19, true}));

TEST(SimpleNeuronScalar, GradientsMatchCentralDifferences) {
  Problem p(5, 4, 3, false);
  const Result result = scalar(p);
  const float step = 1e-2f;
  const auto check = [&](Floats& values, const Floats& gradient, const char* name) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float saved = values[i];
      values[i] = saved + step;
      const double above = loss(p);
      values[i] = saved - step;
      const double below = loss(p);
      values[i] = saved;
      const double slope = (above - below) / (2.0 * static_cast<double>(step));
      EXPECT_NEAR(gradient[i], slope, 2e-2 * std::max(1.0, std::fabs(slope))) << name << " element " << i;
    }
  };
  check(p.position, result.grad_position, "position");
  check(p.energy, result.grad_energy, "energy");
  check(p.weights, result.grad_weights, "weights");
}

TEST(SimpleNeuronScalar, NanEnergyStaysInItsOwnFlow) {
  Problem p(8, 4, 3, false);
  p.energy[1] = std::nanf("");
  const Result result = scalar(p);
  for (std::size_t i = 0; i < result.features.size(); ++i)
    EXPECT_EQ(std::isnan(result.features[i]), i / 4 == 1) << "element " << i;
}

}  // namespace
}  // namespace twinbench::energy_flow::simple_neuron

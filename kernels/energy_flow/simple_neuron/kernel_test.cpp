// Simple neuron kernels on the host executor, in every thread order, against the scalar (one-lane) form; and that form
// against central differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "harness/simt/host.h"
#include "kernels/energy_flow/simple_neuron/backward_kernel.h"
#include "kernels/energy_flow/simple_neuron/tile.h"

namespace twinbench::energy_flow::simple_neuron {

namespace {

constexpr unsigned kSeed = 20240607;

std::vector<float> random_values(std::size_t count, unsigned stream, float scale) {
  std::mt19937 generator(kSeed + stream);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

struct Problem {
  SimpleNeuronLayout layout;
  std::int64_t flows;
  bool round;
  std::vector<float> weights, position, energy, grad_features;

  Problem(int hidden, int outputs, std::int64_t flow_count, bool bf16)
      : layout{hidden, outputs}, flows(flow_count), round(bf16) {
    const auto count = static_cast<std::size_t>(flows);
    weights = random_values(static_cast<std::size_t>(layout.total()), 1, 0.5f);
    position = random_values(count * 3, 2, 0.5f);
    energy = random_values(count, 3, 1.0f);
    grad_features = random_values(count * static_cast<std::size_t>(outputs), 4, 1.0f);
    if (round)
      for (const auto& [begin, end] : {std::pair{0, 9}, {layout.weight_1(), layout.bias_1()},
                                      {layout.weight_2(), layout.bias_2()}, {layout.weight_3(), layout.bias_3()}})
        for (int i = begin; i < end; ++i) weights[static_cast<std::size_t>(i)] = round_to_bf16(weights[static_cast<std::size_t>(i)]);
  }
};

struct Result {
  std::vector<float> features, grad_position, grad_energy, grad_weights;
};

// One flow after another, one lane.
Result scalar(const Problem& p) {
  const auto outputs = static_cast<std::size_t>(p.layout.outputs);
  std::vector<float> scratch(static_cast<std::size_t>(SimpleNeuronTile<1>::size(p.layout)));
  std::vector<float> lane_sums(static_cast<std::size_t>(SimpleNeuronGradients<1>::lane_sum_size(p.layout)));
  std::vector<float> rows(static_cast<std::size_t>(SimpleNeuronGradients<1>::rows_size(p.layout)));
  Result result;
  result.grad_weights.resize(static_cast<std::size_t>(p.layout.total()));
  const SimpleNeuronTile<1> tile{p.layout, scratch.data()};
  const SimpleNeuronGradients<1> sums{p.layout, result.grad_weights.data(), lane_sums.data(), rows.data()};
  for (std::size_t flow = 0; flow < static_cast<std::size_t>(p.flows); ++flow) {
    for (int i = 0; i < 3; ++i) tile.position()[i] = operand(p.position[flow * 3 + static_cast<std::size_t>(i)], p.round);
    *tile.energy() = p.energy[flow];
    simple_neuron_forward(tile, p.weights.data(), p.round);
    result.features.insert(result.features.end(), tile.features(), tile.features() + outputs);
    *tile.energy() = p.energy[flow];
    std::copy_n(p.grad_features.begin() + static_cast<std::ptrdiff_t>(flow * outputs), outputs, tile.features());
    simple_neuron_backward(tile, p.weights.data(), p.round, sums);
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

void expect_close(const std::vector<float>& actual, const std::vector<float>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double scale = 0;
  for (const float value : expected) scale = std::max(scale, static_cast<double>(std::fabs(value)));
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * scale) << "element " << i << ", seed " << kSeed;
}

struct Case {
  int hidden, outputs;
  std::int64_t flows;
  bool round;
};

class SimpleNeuronKernel : public testing::TestWithParam<Case> {};

SimpleNeuronArguments arguments_of(const Problem& p, const simt::GuardedBuffer<float>& weights,
                                   const simt::GuardedBuffer<float>& position, const simt::GuardedBuffer<float>& energy) {
  SimpleNeuronArguments a;
  a.layout = p.layout;
  a.round = p.round;
  a.flows = p.flows;
  a.weights = weights.data();
  a.position = {position.data(), 3, 1};
  a.energy = {energy.data(), 1, 1};
  return a;
}

TEST_P(SimpleNeuronKernel, ForwardMatchesTheScalarForm) {
  const auto [hidden, outputs, flows, round] = GetParam();
  const Problem p(hidden, outputs, flows, round);
  const Result expected = scalar(p);
  simt::GuardedBuffer<float> weights(p.weights), position(p.position), energy(p.energy);
  for (const simt::Order order : simt::kAllOrders)
    for (const std::int64_t blocks : {neuron_groups(flows), std::int64_t{1}}) {
      simt::GuardedBuffer<float> features(expected.features.size());
      SimpleNeuronArguments a = arguments_of(p, weights, position, energy);
      a.features = features.data();
      const auto report = simt::launch_on_host(SimpleNeuronForward{}, blocks, kNeuronThreads,
                                               static_cast<std::size_t>(neuron_forward_shared_bytes(p.layout)),
                                               {.order = order, .seed = kSeed}, a);
      EXPECT_TRUE(report.ok()) << report.text();
      expect_close({features.begin(), features.end()}, expected.features, round ? 1e-2 : 1e-5);
    }
}

TEST_P(SimpleNeuronKernel, BackwardMatchesTheScalarForm) {
  const auto [hidden, outputs, flows, round] = GetParam();
  const Problem p(hidden, outputs, flows, round);
  const Result expected = scalar(p);
  simt::GuardedBuffer<float> weights(p.weights), position(p.position), energy(p.energy), gradient(p.grad_features);
  const auto total = static_cast<std::size_t>(p.layout.total());
  for (const simt::Order order : simt::kAllOrders) {
    const std::int64_t blocks = std::min<std::int64_t>(2, neuron_groups(flows));
    simt::GuardedBuffer<float> grad_position(expected.grad_position.size()), grad_energy(expected.grad_energy.size());
    simt::GuardedBuffer<float> partial(static_cast<std::size_t>(blocks) * total), grad_weights(total);
    SimpleNeuronArguments a = arguments_of(p, weights, position, energy);
    a.grad_features = {gradient.data(), outputs, 1};
    a.grad_position = grad_position.data();
    a.grad_energy = grad_energy.data();
    a.partial = partial.data();
    a.grad_weights = grad_weights.data();
    const simt::HostOptions options{.order = order, .seed = kSeed};
    auto report = simt::launch_on_host(SimpleNeuronBackward{}, blocks, kNeuronThreads,
                                       static_cast<std::size_t>(neuron_backward_shared_bytes(p.layout)), options, a);
    EXPECT_TRUE(report.ok()) << report.text();
    report = simt::launch_on_host(SimpleNeuronSum{}, (p.layout.total() + kNeuronThreads - 1) / kNeuronThreads,
                                  kNeuronThreads, 0, options, a, blocks);
    EXPECT_TRUE(report.ok()) << report.text();
    expect_close({grad_position.begin(), grad_position.end()}, expected.grad_position, round ? 3e-2 : 2e-5);
    expect_close({grad_energy.begin(), grad_energy.end()}, expected.grad_energy, round ? 3e-2 : 2e-5);
    expect_close({grad_weights.begin(), grad_weights.end()}, expected.grad_weights, round ? 3e-2 : 2e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, SimpleNeuronKernel,
                         testing::Values(Case{4, 3, 5, false}, Case{32, 64, 16, false}, Case{33, 65, 17, false},
                                         Case{29, 31, 35, false}, Case{32, 64, 1, false}, Case{32, 64, 19, true}));

TEST(SimpleNeuronScalar, GradientsMatchCentralDifferences) {
  Problem p(5, 4, 3, false);
  const Result result = scalar(p);
  const float step = 1e-2f;
  const auto check = [&](std::vector<float>& values, const std::vector<float>& gradient, const char* name) {
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

// The carrier heads' kernels on the host, every thread order, against the formulas in double precision; the count rules.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "harness/simt/host.h"
#include "kernels/energy_flow/carrier_heads/kernel.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

using simt::GuardedBuffer;
using simt::Order;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> spread(std::size_t count, unsigned seed, float amplitude) {
  std::vector<float> values(count);
  std::uint32_t state = seed * 2654435761u + 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = amplitude * (static_cast<float>(state >> 8) * 0x1p-23f - 1.0f);
  }
  return values;
}

double gelu(double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }
double gelu_slope(double x) {
  return 0.5 * std::erfc(-x * std::sqrt(0.5)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::acos(-1.0));
}
double clamped(double x) { return std::fmin(std::fmax(x, -0.5), 0.5); }

struct Shape {
  std::int64_t flows;
  std::int32_t energy_width, head_width;
  bool gate;
};

// One launch's inputs and outputs at a shape, and the second layers in double.
struct Heads {
  explicit Heads(const Shape& s)
      : shape(s),
        columns{s.energy_width, s.head_width, s.energy_width + s.head_width + (s.gate ? 1 + s.head_width : 0) + 3},
        sums(spread(s.flows * columns.all, 1, 2)), bias(spread(columns.all, 2, 0.5)),
        energy_out(spread(s.energy_width, 3, 0.4)), displacement_out(spread(3 * s.head_width, 4, 0.4)),
        gate_out(spread(s.head_width, 5, 0.6)), out_bias(spread(5, 6, 0.3)), position(spread(3 * s.flows, 7, 1)),
        sample(s.flows), local(s.flows), energy(s.flows), displacement(3 * s.flows), delta(3 * s.flows),
        raw(3 * s.flows), measure(s.flows), child(s.flows), activated(s.flows * columns.all), count(s.flows),
        second(s.flows) {
    for (std::int64_t f = 0; f < s.flows; ++f) sample[f] = 100 + f % 2, local[f] = f;
  }

  HeadsArguments arguments(const HeadsRule& rule) const {
    return {rule, columns, sums.data(), bias.data(), energy_out.data(), displacement_out.data(), gate_out.data(),
            out_bias.data(), position.data(), sample.data(), local.data(), energy.data(), displacement.data(),
            delta.data(), raw.data(), measure.data(), count.data(), child.data(), activated.data(), second.data(),
            shape.flows, 0};
  }
  double column(std::int64_t flow, std::int32_t j) const {
    return static_cast<double>(sums[flow * columns.all + j]) + bias[j];
  }
  double head(std::int64_t flow, std::int32_t first, std::int32_t width, const float* weight, double start) const {
    for (std::int32_t j = 0; j < width; ++j) start += gelu(column(flow, first + j)) * weight[j];
    return start;
  }

  Shape shape;
  HeadColumns columns;
  GuardedBuffer<float> sums, bias, energy_out, displacement_out, gate_out, out_bias, position;
  GuardedBuffer<std::int64_t> sample, local;
  GuardedBuffer<float> energy, displacement, delta, raw, measure, child, activated;
  GuardedBuffer<std::int32_t> count;
  GuardedBuffer<HeadSums> second;
};

HeadsRule rule_for(bool gate, float noise) { return {1.5f, noise, 0.0f, gate ? 0.45f : 0.15f, 3, gate, {1234, 7, 5}}; }

simt::Report launch(const HeadsArguments& a, Order order) {
  return simt::launch_on_host(FinishHeads{}, (a.flows + 1) / 2, 2 * simt::kWarpSize, 0, {.order = order, .seed = 7}, a);
}

class HeadsKernels : public testing::TestWithParam<Shape> {};

TEST_P(HeadsKernels, FinishesEveryFlow) {
  const Heads h(GetParam());
  const auto [flows, energy_width, width, gate] = h.shape;
  const HeadsRule rule = rule_for(gate, 0.05f);
  for (const Order order : simt::kAllOrders) {
    const auto report = launch(h.arguments(rule), order);
    ASSERT_TRUE(report.ok()) << report.text();
    for (std::int64_t f = 0; f < flows; ++f) {
      const double energy = std::tanh(h.head(f, 0, energy_width, h.energy_out.data(), h.out_bias[0]));
      ASSERT_NEAR(h.energy[f], energy, 5e-6);
      const Vector3 normal = exploration_normals(rule.key, 100 + f % 2, f);
      const double noise[] = {0.05 * normal.x, 0.05 * normal.y, 0.0};
      double squares = 0;
      for (int k = 0; k < 3; ++k) {
        const double d = h.head(f, energy_width, width, h.displacement_out.data() + k * width, h.out_bias[1 + k]);
        const double move = clamped(1.5 * d) + noise[k];
        squares += move * move;
        ASSERT_NEAR(h.displacement[3 * f + k], d, 5e-6);
        ASSERT_NEAR(h.delta[3 * f + k], clamped(1.5 * d), 5e-6);
        ASSERT_NEAR(h.raw[3 * f + k], h.position[3 * f + k] + move, 5e-6);
      }
      if (gate) {
        const double q = 1 / (1 + std::exp(-h.head(f, h.columns.gate(), width, h.gate_out.data(), h.out_bias[4])));
        ASSERT_NEAR(h.measure[f], q, 5e-6);
        ASSERT_EQ(h.count[f], gate_spawn_count(h.measure[f], rule.threshold, rule.most));
        ASSERT_NEAR(h.child[f], std::tanh(h.column(f, h.columns.child())) / (h.count[f] + 1), 5e-6);
      } else {
        ASSERT_NEAR(h.measure[f], std::sqrt(squares), 5e-6);
        ASSERT_EQ(h.count[f], movement_spawn_count(h.measure[f], rule.threshold, rule.most));
        ASSERT_EQ(h.child[f], h.energy[f]);
      }
    }
  }
}

TEST_P(HeadsKernels, NoNoiseIsBitIdenticalToNoiseOff) {
  const Heads with(GetParam()), without(GetParam());
  HeadsRule off = rule_for(with.shape.gate, 0.0f), other_key = off;
  other_key.key = {99, 1, 2};
  ASSERT_TRUE(launch(with.arguments(off), Order::kForward).ok());
  ASSERT_TRUE(launch(without.arguments(other_key), Order::kForward).ok());
  for (std::size_t i = 0; i < with.raw.size(); ++i) {
    const float no_noise = with.position[i] + with.delta[i];
    ASSERT_EQ(kernels::bits_of(with.raw[i]), kernels::bits_of(no_noise));
    ASSERT_EQ(kernels::bits_of(with.raw[i]), kernels::bits_of(without.raw[i]));
  }
}

TEST_P(HeadsKernels, GradientsOfTheFirstLayersSums) {
  const Heads h(GetParam());
  const auto [flows, energy_width, width, gate] = h.shape;
  const HeadsRule rule = rule_for(gate, 0.0f);
  ASSERT_TRUE(launch(h.arguments(rule), Order::kForward).ok());
  const GuardedBuffer<float> g_energy(spread(flows, 21, 1)), g_child(spread(flows, 22, 1));
  const GuardedBuffer<float> g_d(spread(3 * flows, 23, 1)), g_delta(spread(3 * flows, 24, 1)), g_raw(spread(3 * flows, 25, 1));
  for (const Order order : simt::kAllOrders) {
    const GuardedBuffer<float> sums(h.sums.values()), second(4 * flows);
    const GuardedBuffer<std::uint16_t> bf16(sums.size());
    const HeadsBackwardArguments a{rule, h.columns, h.bias.data(), h.energy_out.data(), h.displacement_out.data(),
                                   h.second.data(), h.count.data(), g_energy.data(), g_d.data(), g_delta.data(),
                                   g_raw.data(), g_child.data(), sums.data(), bf16.data(), second.data(), nullptr, flows};
    const auto report = simt::launch_on_host(DifferentiateHeads{}, (flows + 1) / 2, 2 * simt::kWarpSize, 0,
                                             {.order = order, .seed = 7}, a);
    ASSERT_TRUE(report.ok()) << report.text();
    for (std::int64_t f = 0; f < flows; ++f) {
      const double e = h.energy[f], grad_e = (g_energy[f] + (gate ? 0.0 : g_child[f])) * (1 - e * e);
      double grad_d[3];
      for (int k = 0; k < 3; ++k) {
        const std::int64_t at = 3 * f + k;
        grad_d[k] = g_d[at] + (std::abs(1.5f * h.displacement[at]) <= 0.5f ? 1.5 * (g_delta[at] + g_raw[at]) : 0.0);
        ASSERT_NEAR(second[4 * f + 1 + k], grad_d[k], 5e-6);
      }
      const float* row = sums.data() + f * h.columns.all;
      for (std::int32_t j = 0; j < energy_width; ++j)
        ASSERT_NEAR(row[j], grad_e * h.energy_out[j] * gelu_slope(h.column(f, j)), 5e-6);
      for (std::int32_t j = 0; j < width; ++j) {
        double grad = 0;
        for (int k = 0; k < 3; ++k) grad += grad_d[k] * h.displacement_out[k * width + j];
        ASSERT_NEAR(row[energy_width + j], grad * gelu_slope(h.column(f, energy_width + j)), 5e-6);
      }
      if (!gate) continue;
      const double s = std::tanh(h.column(f, h.columns.child()));
      ASSERT_NEAR(row[h.columns.child()], g_child[f] * (1 - s * s) / (h.count[f] + 1), 5e-6);
      ASSERT_EQ(bf16[f * h.columns.all], kernels::bf16_bits(row[0]));
    }
  }
}

TEST_P(HeadsKernels, RoundsTheSecondLayersOperandAndKeepsItsExactGradient) {
  const Heads h(GetParam());
  const std::int64_t flows = h.shape.flows;
  const HeadsRule rule = rule_for(h.shape.gate, 0.0f);
  ASSERT_TRUE(launch(h.arguments(rule), Order::kForward).ok());
  const GuardedBuffer<float> one(spread(flows, 21, 1)), three(spread(3 * flows, 23, 1));
  const GuardedBuffer<float> sums(h.sums.values()), second(4 * flows), operand(4 * flows);
  const HeadsBackwardArguments a{rule, h.columns, h.bias.data(), h.energy_out.data(), h.displacement_out.data(),
                                 h.second.data(), h.count.data(), one.data(), three.data(), three.data(),
                                 three.data(), one.data(), sums.data(), nullptr, second.data(), operand.data(), flows};
  const auto report = simt::launch_on_host(DifferentiateHeads{}, (flows + 1) / 2, 2 * simt::kWarpSize, 0, {}, a);
  ASSERT_TRUE(report.ok()) << report.text();
  for (std::size_t i = 0; i < second.size(); ++i) ASSERT_EQ(operand[i], kernels::round_to_bf16(second[i]));
  for (std::int64_t f = 0; f < flows; ++f)
    ASSERT_NEAR(sums[f * h.columns.all], operand[4 * f] * h.energy_out[0] * gelu_slope(h.column(f, 0)), 5e-6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, HeadsKernels,
                         testing::Values(Shape{1, 2, 4, false}, Shape{1, 2, 4, true}, Shape{7, 31, 33, true},
                                         Shape{6, 40, 64, false}, Shape{5, 1, 1, true}),
                         [](const auto& info) {
                           return std::to_string(info.param.flows) + "flows" + std::to_string(info.param.energy_width) +
                                  (info.param.gate ? "gate" : "movement");
                         });

TEST(RoundKernel, CoversATailBeyondTheGrid) {
  const GuardedBuffer<float> values(spread(1000, 31, 1e3f));
  for (const Order order : simt::kAllOrders) {
    const GuardedBuffer<std::uint16_t> rounded(values.size());
    const auto report = simt::launch_on_host(RoundToBf16{}, 3, 64, 0, {.order = order, .seed = 7},
                                             RoundArguments{values.data(), rounded.data(), 1000});
    ASSERT_TRUE(report.ok()) << report.text();
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(rounded[i], kernels::bf16_bits(values[i]));
  }
}

// Energy-flow specification C08's tables.
TEST(SpawnCounts, Movement) {
  EXPECT_EQ(movement_spawn_count(0.14f, 0.15f, 1), 0);
  EXPECT_EQ(movement_spawn_count(0.29f, 0.15f, 1), 0);
  EXPECT_EQ(movement_spawn_count(0.31f, 0.15f, 1), 1);
  EXPECT_EQ(movement_spawn_count(0.8660254f, 0.15f, 3), 3);
  EXPECT_EQ(movement_spawn_count(0.8660254f, 0.5f, 1), 0);
  EXPECT_EQ(movement_spawn_count(1.01f, 0.5f, 1), 1);
  EXPECT_EQ(movement_spawn_count(0.8660254f, 0.1f, 3), 3);
  EXPECT_EQ(movement_spawn_count(0.5f, 0.5f, 3), 0);  // the threshold itself does not pass
  EXPECT_EQ(movement_spawn_count(kNan, 0.1f, 3), 0);
  EXPECT_EQ(movement_spawn_count(std::numeric_limits<float>::infinity(), 0.1f, 3), 3);
}

TEST(SpawnCounts, Gate) {
  const float gates[] = {0.60f, 0.61f, 0.74f, 0.87f, 1.0f};
  const int expected[] = {0, 1, 2, 3, 3};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(gate_spawn_count(gates[i], 0.6f, 3), expected[i]) << gates[i];
  EXPECT_EQ(gate_spawn_count(kNan, 0.6f, 3), 0);
}

TEST(Clamp, KeepsNanAndPassesGradientAtItsBoundary) {
  EXPECT_TRUE(std::isnan(clamp_half(kNan)));
  EXPECT_EQ(clamp_half(7.0f), 0.5f);
  EXPECT_EQ(clamp_half(-7.0f), -0.5f);
  EXPECT_EQ(clamp_half_derivative(0.5f), 1.0f);
  EXPECT_EQ(clamp_half_derivative(-0.5f), 1.0f);
  EXPECT_EQ(clamp_half_derivative(std::nextafter(0.5f, 1.0f)), 0.0f);
}

TEST(Noise, MatchesTheSpecificationsTable) {
  const Vector3 n = exploration_normals({1234, 7, 5}, 3, 42);
  EXPECT_NEAR(n.x, -0.7395252, 1e-6);
  EXPECT_NEAR(n.y, -0.0247834, 1e-6);
  EXPECT_NEAR(n.z, 0.2350090, 1e-6);
}

}  // namespace
}  // namespace twinbench::energy_flow::carrier_heads

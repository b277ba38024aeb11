// The carrier heads' kernels on the host, every thread order, against the formulas in double; the count rules.
#include "harness/simt/kernel_testing.h"

#include <limits>

#include "kernels/energy_flow/carrier_heads/backward_kernel.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

using simt::Buffer;
using simt::GuardedBuffer;
using simt::Order;
using simt::spread;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

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
  explicit Heads(const Shape& s) : shape(s) {
    for (std::int64_t f = 0; f < flows; ++f) sample[f] = 100 + f % 2, local[f] = f;
  }

  ForwardArguments<float> arguments(const Rule<float>& rule) const {
    return {.rule = rule,
            .columns = columns,
            .flows = shape.flows,
            .sums = sums.data(),
            .bias = bias.data(),
            .energy_out_weight = energy_out.data(),
            .displacement_out_weight = displacement_out.data(),
            .gate_out_weight = gate_out.data(),
            .out_bias = out_bias.data(),
            .position = position.data(),
            .sample_key = sample.data(),
            .local_id = local.data(),
            .energy = energy.data(),
            .displacement = displacement.data(),
            .delta = delta.data(),
            .raw = raw.data(),
            .spawn_measure = measure.data(),
            .spawn_count = count.data(),
            .child_energy = child.data(),
            .second_sums = second.data()};
  }
  BackwardArguments<float> backward(const Rule<float>& rule, const Buffer& one, const Buffer& g_child,
                                    const Buffer& g_d, const Buffer& g_delta, const Buffer& g_raw,
                                    const Buffer& first_sums, kernels::Operands<float> gradient,
                                    const Buffer& partial) const {
    return {.rule = rule,
            .columns = columns,
            .flows = shape.flows,
            .bias = bias.data(),
            .energy_out_weight = energy_out.data(),
            .displacement_out_weight = displacement_out.data(),
            .second_sums = second.data(),
            .spawn_count = count.data(),
            .grad_energy = one.data(),
            .grad_displacement = g_d.data(),
            .grad_delta = g_delta.data(),
            .grad_raw = g_raw.data(),
            .grad_child_energy = g_child.data(),
            .sums = first_sums.data(),
            .gradient = gradient,
            .plan = plan,
            .partial = partial.data()};
  }
  double column(std::int64_t flow, std::int32_t j) const {
    return static_cast<double>(sums[flow * columns.all + j]) + bias[j];
  }
  double head(std::int64_t flow, std::int32_t first, std::int32_t width, const float* weight, double start) const {
    for (std::int32_t j = 0; j < width; ++j) start += gelu(column(flow, first + j)) * weight[j];
    return start;
  }

  Shape shape;
  std::int64_t flows = shape.flows;
  std::int32_t width = shape.head_width;
  // Padded to a multiple of four where that lets the kernels take four columns at once, else by three.
  Columns columns{shape.energy_width, width,
                  shape.energy_width + width + (shape.gate ? Columns::kChildColumns + width : 0) +
                      ((shape.energy_width | width) % 4 == 0 ? 4 : 3)};
  BackwardPlan plan = backward_plan(flows, columns, shape.gate);
  Buffer sums{spread(flows * columns.all, 1, 2)}, bias{spread(columns.all, 2, 0.5)};
  Buffer energy_out{spread(shape.energy_width, 3, 0.4)}, displacement_out{spread(3 * width, 4, 0.4)};
  Buffer gate_out{spread(width, 5, 0.6)}, out_bias{spread(5, 6, 0.3)}, position{spread(3 * flows, 7)};
  GuardedBuffer<std::int64_t> sample = buffer<std::int64_t>(1), local = buffer<std::int64_t>(1);
  Buffer energy = buffer<float>(1), displacement = buffer<float>(3), delta = buffer<float>(3), raw = buffer<float>(3);
  Buffer measure = buffer<float>(1), child = buffer<float>(1), second = buffer<float>(kKeptSums);
  GuardedBuffer<std::int32_t> count = buffer<std::int32_t>(1);

  template <class T>
  GuardedBuffer<T> buffer(std::int64_t columns_a_flow) const {
    return GuardedBuffer<T>(flows * columns_a_flow);
  }
};

Rule<float> rule_for(bool gate, float noise) {
  return {.scale = 1.5f,
          .noise = noise,
          .noise_on_z = 0.0f,
          .threshold = gate ? 0.45f : 0.15f,
          .most = 3,
          .gate = gate,
          .key = {.seed = 1234, .attempt = 7, .step = 5}};
}

void launch(const ForwardArguments<float>& a, Order order = Order::kForward) {
  if (columns_at_once(a.columns) == 4)
    simt::run_clean(Forward{}, forward_blocks(a.flows), kThreads, order, a,
                    forward_shared_bytes(a.columns, a.rule.gate));
  else
    simt::run_clean(ForwardAnyWidth{}, forward_blocks(a.flows), kThreads, order, a);
}
void launch(const BackwardArguments<float>& a, Order order = Order::kForward) {
  const simt::Size3 grid(a.plan.blocks, a.plan.chunks);
  const int width = columns_at_once(a.columns);
  if (width == 4)
    simt::run_clean(Backward{}, grid, kThreads, order, a, backward_shared_bytes(width));
  else
    simt::run_clean(BackwardAnyWidth{}, grid, kThreads, order, a, backward_shared_bytes(width));
}

// What the column sums make of the blocks' partial sums.
std::vector<double> totals_of(const BackwardPlan& plan, const Buffer& partial) {
  std::vector<double> totals(static_cast<std::size_t>(plan.sums()));
  for (std::int64_t block = 0; block < plan.blocks; ++block)
    for (std::int32_t c = 0; c < plan.sums(); ++c) totals[c] += partial[block * plan.stride() + c];
  return totals;
}

class HeadsKernels : public testing::TestWithParam<Shape> {};

TEST_P(HeadsKernels, FinishesEveryFlow) {
  const Heads h(GetParam());
  const auto [flows, energy_width, width, gate] = h.shape;
  const Rule<float> rule = rule_for(gate, 0.05f);
  for (const Order order : simt::kAllOrders) {
    launch(h.arguments(rule), order);
    for (std::int64_t f = 0; f < flows; ++f) {
      const double energy = std::tanh(h.head(f, 0, energy_width, h.energy_out.data(), h.out_bias[0]));
      ASSERT_NEAR(h.energy[f], energy, 5e-6);
      const Vector3<float> normal = exploration_normals(rule.key, 100 + f % 2, f);
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
  Rule<float> off = rule_for(with.shape.gate, 0.0f), other_key = off;
  other_key.key = {99, 1, 2};
  launch(with.arguments(off));
  launch(without.arguments(other_key));
  for (std::size_t i = 0; i < with.raw.size(); ++i) {
    const float no_noise = with.position[i] + with.delta[i];
    ASSERT_EQ(kernels::bits_of(with.raw[i]), kernels::bits_of(no_noise));
    ASSERT_EQ(kernels::bits_of(with.raw[i]), kernels::bits_of(without.raw[i]));
  }
}

TEST_P(HeadsKernels, GradientsOfTheFirstLayersSums) {
  const Heads h(GetParam());
  const auto [flows, energy_width, width, gate] = h.shape;
  const Rule<float> rule = rule_for(gate, 0.0f);
  launch(h.arguments(rule));
  const Buffer g_energy(spread(flows, 21, 1)), g_child(spread(flows, 22, 1));
  const Buffer g_d(spread(3 * flows, 23)), g_delta(spread(3 * flows, 24)), g_raw(spread(3 * flows, 25));
  for (const Order order : simt::kAllOrders) {
    const Buffer sums(h.sums.values()), partial(h.plan.blocks * h.plan.stride());
    const GuardedBuffer<std::uint16_t> bf16(sums.size());
    launch(h.backward(rule, g_energy, g_child, g_d, g_delta, g_raw, sums, {sums.data(), bf16.data()}, partial), order);
    std::vector<double> expected(static_cast<std::size_t>(h.plan.sums()));
    for (std::int64_t f = 0; f < flows; ++f) {
      const double e = h.energy[f], grad_e = (g_energy[f] + (gate ? 0.0 : g_child[f])) * (1 - e * e);
      double grad_d[3];
      expected[h.plan.out_bias()] += grad_e;
      for (int k = 0; k < 3; ++k) {
        const std::int64_t at = 3 * f + k;
        grad_d[k] = g_d[at] + (std::abs(1.5f * h.displacement[at]) <= 0.5f ? 1.5 * (g_delta[at] + g_raw[at]) : 0.0);
        expected[h.plan.out_bias() + 1 + k] += grad_d[k];
      }
      const float* row = sums.data() + f * h.columns.all;
      for (std::int32_t j = 0; j < energy_width; ++j) {
        const double gradient = grad_e * h.energy_out[j] * gelu_slope(h.column(f, j));
        ASSERT_NEAR(row[j], gradient, 5e-6);
        expected[j] += gradient;
        expected[h.plan.energy_weight() + j] += grad_e * gelu(h.column(f, j));
      }
      for (std::int32_t j = 0; j < width; ++j) {
        double grad = 0;
        for (int k = 0; k < 3; ++k) {
          grad += grad_d[k] * h.displacement_out[k * width + j];
          expected[h.plan.displacement_weight() + k * width + j] += grad_d[k] * gelu(h.column(f, energy_width + j));
        }
        ASSERT_NEAR(row[energy_width + j], grad * gelu_slope(h.column(f, energy_width + j)), 5e-6);
        expected[energy_width + j] += grad * gelu_slope(h.column(f, energy_width + j));
      }
      if (!gate) continue;
      const double s = std::tanh(h.column(f, h.columns.child()));
      ASSERT_NEAR(row[h.columns.child()], g_child[f] * (1 - s * s) / (h.count[f] + 1), 5e-6);
      expected[h.columns.child()] += g_child[f] * (1 - s * s) / (h.count[f] + 1);
      ASSERT_EQ(bf16[f * h.columns.all], kernels::bf16_bits(row[0]));
    }
    simt::expect_close(totals_of(h.plan, partial), expected, 2e-6 * static_cast<double>(flows + 10));
  }
}

// In bf16 mode only the rounded gradients are stored; the biases' are sums of the exact ones.
TEST_P(HeadsKernels, RoundsTheOperandsOfTheSecondLayersProducts) {
  const Heads h(GetParam());
  const auto [flows, energy_width, width, gate] = h.shape;
  const Rule<float> rule = rule_for(gate, 0.0f);
  launch(h.arguments(rule));
  const Buffer one(spread(flows, 21, 1)), three(spread(3 * flows, 23, 1));
  const Buffer sums(h.sums.values()), partial(h.plan.blocks * h.plan.stride());
  const GuardedBuffer<std::uint16_t> bf16(sums.size());
  BackwardArguments<float> a = h.backward(rule, one, one, three, three, three, sums, {.bf16 = bf16.data()}, partial);
  a.round = true;
  launch(a);
  double bias = 0, weight = 0;
  for (std::int64_t f = 0; f < flows; ++f) {
    ASSERT_EQ(sums[f * h.columns.all], h.sums[f * h.columns.all]);
    const float e = h.energy[f], exact = (one[f] + (gate ? 0.0f : one[f])) * (1 - e) * (1 + e);
    const double operand = kernels::round_to_bf16(exact), x = h.column(f, 0);
    const double stored = kernels::float_of_bf16_bits(bf16[f * h.columns.all]),
                 gradient = operand * h.energy_out[0] * gelu_slope(x);
    ASSERT_NEAR(stored, gradient, 5e-6 + 5e-3 * std::abs(gradient));
    bias += exact;
    weight += operand * kernels::round_to_bf16(static_cast<float>(gelu(x)));
  }
  const std::vector<double> totals = totals_of(h.plan, partial);
  EXPECT_NEAR(totals[h.plan.out_bias()], bias, 1e-5 * static_cast<double>(flows));
  EXPECT_NEAR(totals[h.plan.energy_weight()], weight, 2e-4 * static_cast<double>(flows));
}

INSTANTIATE_TEST_SUITE_P(Shapes, HeadsKernels,
                         testing::Values(Shape{1, 2, 4, false}, Shape{1, 2, 4, true}, Shape{7, 31, 33, true},
                                         Shape{6, 40, 64, false}, Shape{5, 1, 1, true}, Shape{71, 9, 12, true},
                                         Shape{300, 160, 32, true}, Shape{33, 256, 64, false}),
                         [](const auto& info) {
                           return std::to_string(info.param.flows) + "flows" + std::to_string(info.param.energy_width) +
                                  (info.param.gate ? "gate" : "movement");
                         });

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
  const Vector3<float> n = exploration_normals({1234, 7, 5}, 3, 42);
  EXPECT_NEAR(n.x, -0.7395252, 1e-6);
  EXPECT_NEAR(n.y, -0.0247834, 1e-6);
  EXPECT_NEAR(n.z, 0.2350090, 1e-6);
}

}  // namespace
}  // namespace twinbench::energy_flow::carrier_heads

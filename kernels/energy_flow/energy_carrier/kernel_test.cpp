// The energy carrier's kernels on the host, every thread order, against the formulas in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "harness/simt/host.h"
#include "kernels/energy_flow/energy_carrier/kernel.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

using simt::GuardedBuffer;
using simt::Order;

// NamedTensors in [-amplitude, amplitude], different for each seed, the same on every machine.
std::vector<float> spread(std::size_t count, unsigned seed, float amplitude) {
  std::vector<float> values(count);
  std::uint32_t state = seed * 2654435761u + 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = amplitude * (static_cast<float>(state >> 8) * 0x1p-23f - 1.0f);
  }
  return values;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

void expect_close(const GuardedBuffer<float>& got, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(got[i], expected[i], tolerance) << "element " << i;
}

constexpr std::int64_t kWarpsPerBlock = 4;  // smaller blocks than on the device: more of them at small sizes

template <class Kernel, class Arguments>
void run_warp_per_flow(std::int64_t flows, Order order, const Arguments& arguments) {
  const auto report = simt::launch_on_host(Kernel{}, (flows + kWarpsPerBlock - 1) / kWarpsPerBlock,
                                           kWarpsPerBlock * simt::kWarpSize, 0, {.order = order, .seed = 7}, arguments);
  ASSERT_TRUE(report.ok()) << report.text();
}

template <class Kernel, class Arguments>
void run_thread_per_channel(std::int64_t flows, std::int32_t width, Order order, const Arguments& arguments) {
  const auto report = simt::launch_on_host(Kernel{}, flows * blocks_per_flow(width, 32), 32, 0,
                                           {.order = order, .seed = 7}, arguments);
  ASSERT_TRUE(report.ok()) << report.text();
}

struct Shape {
  std::int64_t flows;
  std::int32_t features, width, layers;
};

class CarrierKernels : public testing::TestWithParam<Shape> {};

TEST_P(CarrierKernels, GuardReplacesClampsAndCounts) {
  const auto [flows, features, width, layers] = GetParam();
  std::vector<float> o = spread(flows * features, 1, 3), e = spread(flows, 2, 30), h = spread(layers * flows * width, 3, 14);
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  if (features > 0) o[0] = nan;
  e.back() = nan;
  h.front() = -infinity;
  h.back() = nan;
  const GuardedBuffer<float> features_in(o), energy(e), hidden(h);
  for (const bool bf16 : {false, true})
    for (const Order order : simt::kAllOrders) {
      const GuardedBuffer<float> input(flows * (features + 1)), guarded(h.size());
      const GuardedBuffer<std::uint16_t> input_bf16(input.size()), hidden_bf16(h.size());
      const GuardedBuffer<std::int32_t> hits(flows);
      run_warp_per_flow<CarrierGuard>(
          flows, order,
          CarrierGuardArguments{features_in.data(), energy.data(), hidden.data(), input.data(), guarded.data(),
                                bf16 ? input_bf16.data() : nullptr, bf16 ? hidden_bf16.data() : nullptr, hits.data(),
                                flows, features, width, layers});
      const auto right = [](float raw) { return std::isnan(raw) ? 0.0f : std::fmin(std::fmax(raw, -10.0f), 10.0f); };
      std::vector<std::int32_t> expected_hits(flows, 0);
      for (std::int64_t f = 0; f < flows; ++f)
        for (std::int32_t j = 0; j <= features; ++j) {
          const float raw = j < features ? o[f * features + j] : e[f];
          const std::size_t at = f * (features + 1) + j;
          expected_hits[f] += std::isnan(raw);
          ASSERT_EQ(input[at], right(raw));
          if (bf16) {
            ASSERT_EQ(input_bf16[at], kernels::bf16_bits(right(raw)));
          }
        }
      for (std::size_t i = 0; i < h.size(); ++i) {
        expected_hits[i / width % flows] += std::isnan(h[i]);
        ASSERT_EQ(guarded[i], right(h[i]));
        if (bf16) {
          ASSERT_EQ(hidden_bf16[i], kernels::bf16_bits(right(h[i])));
        }
      }
      ASSERT_EQ(hits.values(), expected_hits);
    }
}

TEST_P(CarrierKernels, GatesAndTheirGradients) {
  const auto [flows, features, width, layers] = GetParam();
  const std::size_t channels = flows * width;
  const GuardedBuffer<float> x(spread(3 * channels, 4, 3)), h_sums(spread(3 * channels, 5, 3));
  const GuardedBuffer<float> bias_x(spread(3 * width, 6, 1)), bias_h(spread(3 * width, 7, 1));
  const GuardedBuffer<float> hidden(spread(channels, 8, 1));
  const GuardedBuffer<float> stored(spread(channels, 9, 1)), above(spread(channels, 10, 1));
  std::vector<double> next, kept(4 * channels), direct, grad_x(3 * channels), grad_h(3 * channels);
  for (std::int64_t f = 0; f < flows; ++f)
    for (std::int32_t j = 0; j < width; ++j) {
      const std::size_t at = f * width + j, row = 3 * f * width + j, keep = 4 * f * width + j;
      const auto sum = [&](const GuardedBuffer<float>& sums, const GuardedBuffer<float>& bias, int block) {
        return static_cast<double>(sums[row + block * width]) + bias[block * width + j];
      };
      const double r = logistic(sum(x, bias_x, 0) + sum(h_sums, bias_h, 0));
      const double z = logistic(sum(x, bias_x, 1) + sum(h_sums, bias_h, 1));
      const double m = sum(h_sums, bias_h, 2), n = std::tanh(sum(x, bias_x, 2) + r * m), h = hidden[at];
      next.push_back((1 - z) * n + z * h);
      kept[keep] = r, kept[keep + width] = z, kept[keep + 2 * width] = n, kept[keep + 3 * width] = m;
      const double g = static_cast<double>(stored[at]) + above[at];
      const double a_n = g * (1 - z) * (1 - n * n), a_r = a_n * m * r * (1 - r), a_z = g * (h - n) * z * (1 - z);
      direct.push_back(g * z);
      grad_x[row] = a_r, grad_x[row + width] = a_z, grad_x[row + 2 * width] = a_n;
      grad_h[row] = a_r, grad_h[row + width] = a_z, grad_h[row + 2 * width] = a_n * r;
    }
  for (const Order order : simt::kAllOrders) {
    const GuardedBuffer<float> got_next(channels), operand(channels), got_kept(4 * channels), got_direct(channels);
    const GuardedBuffer<float> got_x(3 * channels), got_h(3 * channels);
    const GuardedBuffer<std::uint16_t> operand_bf16(channels), x_bf16(3 * channels), h_bf16(3 * channels);
    CarrierGateArguments forward{x.data(), h_sums.data(), bias_x.data(), bias_h.data(), hidden.data(), got_next.data(),
                                 operand.data(), nullptr, got_kept.data(), flows, width};
    run_thread_per_channel<CarrierGates>(flows, width, order, forward);
    expect_close(got_next, next, 2e-6);
    expect_close(operand, next, 2e-6);
    expect_close(got_kept, kept, 2e-6);
    forward.operand_bf16 = operand_bf16.data();
    forward.kept = nullptr;
    run_thread_per_channel<CarrierGates>(flows, width, order, forward);
    for (std::size_t i = 0; i < channels; ++i) ASSERT_EQ(operand_bf16[i], kernels::bf16_bits(operand[i]));
    const CarrierGateBackwardArguments backward{got_kept.data(), hidden.data(), stored.data(), above.data(),
                                                got_x.data(), got_h.data(), got_direct.data(), x_bf16.data(),
                                                h_bf16.data(), flows, width, 1};
    run_thread_per_channel<CarrierGatesBackward>(flows, width, order, backward);
    expect_close(got_x, grad_x, 4e-6);
    expect_close(got_h, grad_h, 4e-6);
    expect_close(got_direct, direct, 4e-6);
    for (std::size_t i = 0; i < 3 * channels; ++i) {
      ASSERT_EQ(x_bf16[i], kernels::bf16_bits(got_x[i]));
      ASSERT_EQ(h_bf16[i], kernels::bf16_bits(got_h[i]));
    }
  }
}

TEST_P(CarrierKernels, MaskStopsGradientsWhereTheGuardActed) {
  const auto [flows, features, width, layers] = GetParam();
  const std::size_t states = layers * flows * width;
  const GuardedBuffer<float> o(spread(flows * features, 1, 15)), e(spread(flows, 2, 15)), h(spread(states, 3, 15));
  const GuardedBuffer<float> grad_input(spread(flows * (features + 1), 4, 1)), direct(spread(states, 5, 1)), product(spread(states, 6, 1));
  for (const Order order : simt::kAllOrders) {
    const GuardedBuffer<float> grad_o(o.size()), grad_e(flows), grad_h(states);
    run_warp_per_flow<CarrierMask>(flows, order,
                                   CarrierMaskArguments{o.data(), e.data(), h.data(), grad_input.data(), direct.data(),
                                                        product.data(), grad_o.data(), grad_e.data(), grad_h.data(),
                                                        flows, features, width, layers});
    for (std::int64_t f = 0; f < flows; ++f) {
      const float* row = grad_input.data() + f * (features + 1);
      for (std::int32_t j = 0; j < features; ++j)
        ASSERT_EQ(grad_o[f * features + j], std::abs(o[f * features + j]) <= 10 ? row[j] : 0.0f);
      ASSERT_EQ(grad_e[f], std::abs(e[f]) <= 10 ? row[features] : 0.0f);
    }
    for (std::size_t i = 0; i < states; ++i) ASSERT_EQ(grad_h[i], std::abs(h[i]) <= 10 ? direct[i] + product[i] : 0.0f);
  }
}

TEST_P(CarrierKernels, ColumnSumsHaveOneOrder) {
  const auto [flows, features, width, layers] = GetParam();
  const std::int32_t stride = width + 3;
  const GuardedBuffer<float> rows(spread(flows * stride, 11, 1));
  std::vector<float> first;
  for (const Order order : simt::kAllOrders) {
    const GuardedBuffer<float> sums(width);
    const auto report = simt::launch_on_host(ColumnSum{}, (width + 31) / 32, {32, ColumnSum::kRowLanes}, 0,
                                             {.order = order, .seed = 7},
                                             ColumnSumArguments{rows.data(), sums.data(), flows, width, stride});
    ASSERT_TRUE(report.ok()) << report.text();
    for (std::int32_t j = 0; j < width; ++j) {
      double expected = 0;
      for (std::int64_t f = 0; f < flows; ++f) expected += rows[f * stride + j];
      ASSERT_NEAR(sums[j], expected, 1e-5);
    }
    if (first.empty()) first = sums.values();
    ASSERT_EQ(sums.values(), first);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CarrierKernels,
                         testing::Values(Shape{1, 0, 1, 1}, Shape{1, 3, 4, 2}, Shape{5, 31, 33, 2}, Shape{11, 64, 32, 3},
                                         Shape{13, 7, 67, 2}),
                         [](const auto& info) {
                           return std::to_string(info.param.flows) + "flows" + std::to_string(info.param.width) + "wide";
                         });

TEST(GruChannel, KeepsTheStateWithinOne) {
  for (const float h : {-1.0f, -0.25f, 0.0f, 0.5f, 1.0f})
    for (const float z : {-100.0f, -1.0f, 0.0f, 3.0f, 100.0f})
      for (const float n : {-1e30f, -2.0f, 0.0f, 2.0f, 1e30f}) {
        const float next = gru_channel(0.3f, z, n, 0.7f, h).next;
        EXPECT_LE(std::abs(next), 1.0f) << h << ' ' << z << ' ' << n;
      }
}

// Energy-flow specification C17: one channel, one input.
TEST(GruChannel, WorkedExample) {
  const float x = 0.7f, h = -0.4f;
  const GruChannel c = gru_channel(0.5f * x - 0.3f * h, 0.2f * x + 0.8f * h, 1.1f * x, 0.6f * h, h);
  EXPECT_NEAR(c.reset, 0.61538376, 1e-6);
  EXPECT_NEAR(c.update, 0.45512111, 1e-6);
  EXPECT_NEAR(c.candidate, 0.55273288, 1e-6);
  EXPECT_NEAR(c.next, 0.11912403, 1e-6);
  const GruChannelGradient g = gru_channel_gradient(c.reset, c.update, c.candidate, 0.6f * h, h, 1.0f);
  EXPECT_NEAR(g.hidden - 0.3f * g.reset_sum + 0.8f * g.update_sum + 0.6f * g.candidate_hidden, 0.41227910, 1e-6);
  EXPECT_NEAR(0.5f * g.reset_sum + 0.2f * g.update_sum + 1.1f * g.candidate_input, 0.35825142, 1e-6);
}

}  // namespace
}  // namespace twinbench::energy_flow::energy_carrier

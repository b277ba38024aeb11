// The energy carrier's kernels on the host, every thread order, against the formulas in double precision.
#include "harness/simt/kernel_testing.h"

#include <limits>

#include "kernels/energy_flow/energy_carrier/fused_kernel.h"
#include "kernels/energy_flow/energy_carrier/kernel.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

using simt::Buffer;
using simt::expect_close;
using simt::Floats;
using simt::GuardedBuffer;
using simt::Order;
using simt::spread;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

constexpr std::int64_t kBlockThreads = 64;

template <class Kernel, class Arguments>
void run_warp_a_flow(Kernel kernel, Order order, const Arguments& a) {
  simt::run_clean(kernel, kernels::warp_blocks(a.shape.flows, kBlockThreads), kBlockThreads, order, a);
}

template <class Kernel, class Arguments>
void run_thread_a_channel(Kernel kernel, Order order, const Arguments& a) {
  simt::run_clean(kernel, a.shape.flows * kernels::blocks_of(a.shape.width, 32), 32, order, a);
}

class CarrierKernels : public testing::TestWithParam<Shape> {};

TEST_P(CarrierKernels, GuardReplacesClampsAndCounts) {
  const auto [flows, features, width, layers] = GetParam();
  Floats o = spread(flows * features, 1, 3), e = spread(flows, 2, 30), h = spread(layers * flows * width, 3, 14);
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  if (features > 0) o[0] = nan;
  e.back() = nan;
  h.front() = -infinity;
  h.back() = nan;
  const Buffer features_in(o, "features", 16), energy(e), hidden(h, "hidden", 16);
  for (const bool bf16 : {false, true})
    for (const Order order : simt::kAllOrders) {
      const std::int32_t columns = input_width(GetParam());
      const Buffer input(flows * columns, "input", 16), guarded(h.size(), "guarded", 16);
      const GuardedBuffer<std::uint16_t> input_bf16(input.size(), "input", 8), hidden_bf16(h.size(), "guarded", 8);
      const GuardedBuffer<std::int32_t> hits(flows);
      const GuardArguments arguments = {.shape = GetParam(),
                                        .guarded_layers = layers,
                                        .features = features_in.data(),
                                        .energy = energy.data(),
                                        .hidden = hidden.data(),
                                        .input = {input.data(), bf16 ? input_bf16.data() : nullptr},
                                        .guarded_hidden = {guarded.data(), bf16 ? hidden_bf16.data() : nullptr},
                                        .guard_hits = hits.data()};
      EXPECT_EQ(takes_four(arguments), features % 4 == 0 && width % 4 == 0);
      if (takes_four(arguments))
        run_warp_a_flow(Guard{}, order, arguments);
      else
        run_warp_a_flow(GuardAnyWidth{}, order, arguments);
      const auto right = [](float raw) { return std::isnan(raw) ? 0.0f : std::fmin(std::fmax(raw, -10.0f), 10.0f); };
      std::vector<std::int32_t> expected_hits(flows, 0);
      for (std::int64_t f = 0; f < flows; ++f)
        for (std::int32_t j = 0; j < columns; ++j) {
          const float raw = j < features ? o[f * features + j] : j == features ? e[f] : 0.0f;
          const std::size_t at = f * columns + j;
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
  const Buffer x(spread(3 * channels, 4, 3)), h_sums(spread(3 * channels, 5, 3));
  const Buffer bias_x(spread(3 * width, 6, 1)), bias_h(spread(3 * width, 7, 1));
  const Buffer hidden(spread(channels, 8, 1));
  const Buffer stored(spread(channels, 9, 1)), above(spread(channels, 10, 1));
  std::vector<double> next, kept(4 * channels), direct, grad_x(3 * channels), grad_h(3 * channels);
  for (std::int64_t f = 0; f < flows; ++f)
    for (std::int32_t j = 0; j < width; ++j) {
      const std::size_t at = f * width + j, row = 3 * f * width + j, keep = 4 * f * width + j;
      const auto sum = [&](const Buffer& sums, const Buffer& bias, int block) {
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
    const Buffer got_next(channels), operand(channels), got_kept(4 * channels), got_direct(channels);
    const Buffer got_x(3 * channels), got_h(3 * channels);
    const GuardedBuffer<std::uint16_t> operand_bf16(channels), x_bf16(3 * channels), h_bf16(3 * channels);
    GatesArguments forward{.shape = GetParam(),
                           .input_sums = x.data(),
                           .hidden_sums = h_sums.data(),
                           .bias_input = bias_x.data(),
                           .bias_hidden = bias_h.data(),
                           .hidden = hidden.data(),
                           .next = got_next.data(),
                           .operand = {.plain = operand.data()},
                           .kept = got_kept.data()};
    run_thread_a_channel(Gates{}, order, forward);
    expect_close(got_next, next, 2e-6);
    expect_close(operand, next, 2e-6);
    expect_close(got_kept, kept, 2e-6);
    forward.operand = {.bf16 = operand_bf16.data()};
    forward.kept = nullptr;
    run_thread_a_channel(Gates{}, order, forward);
    for (std::size_t i = 0; i < channels; ++i) ASSERT_EQ(operand_bf16[i], kernels::bf16_bits(operand[i]));
    run_thread_a_channel(GatesBackward{}, order,
                         GatesBackwardArguments{.shape = GetParam(),
                                                .kept = got_kept.data(),
                                                .hidden = hidden.data(),
                                                .grad_stored = stored.data(),
                                                .grad_above = above.data(),
                                                .grad_input_sums = {got_x.data(), x_bf16.data()},
                                                .grad_hidden_sums = {got_h.data(), h_bf16.data()},
                                                .grad_direct = got_direct.data(),
                                                .top = true});
    expect_close(got_x, grad_x, 4e-6);
    expect_close(got_h, grad_h, 4e-6);
    expect_close(got_direct, direct, 4e-6);
    for (std::size_t i = 0; i < 3 * channels; ++i) {
      ASSERT_EQ(x_bf16[i], kernels::bf16_bits(got_x[i]));
      ASSERT_EQ(h_bf16[i], kernels::bf16_bits(got_h[i]));
    }
  }
}

// Products of bf16 operands in double, then the gates.
class FusedCarrier : public testing::TestWithParam<Shape> {};

TEST_P(FusedCarrier, FusedGatesEqualProductsAndGates) {
  const auto [flows, features, width, layers] = GetParam();
  const std::int32_t columns = input_width(GetParam());
  const auto bf16 = [](std::int64_t count, unsigned seed, float amplitude) {
    const Floats values = spread(count, seed, amplitude);
    std::vector<std::uint16_t> bits(values.size());
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = kernels::bf16_bits(values[i]);
    return GuardedBuffer<std::uint16_t>(bits, "bf16", 16);
  };
  const auto input = bf16(flows * columns, 1, 2), operand = bf16(flows * width, 2, 1);
  const auto weight_input = bf16(3 * width * columns, 3, 0.3), weight_hidden = bf16(3 * width * width, 4, 0.3);
  const Buffer bias_x(spread(3 * width, 6, 1)), bias_h(spread(3 * width, 7, 1)), hidden(spread(flows * width, 8, 1));
  const auto product = [](const auto& rows, const auto& weights, std::int64_t row, std::int64_t column, int inner) {
    double sum = 0;
    for (int k = 0; k < inner; ++k)
      sum += static_cast<double>(kernels::float_of_bf16_bits(rows[row * inner + k])) *
             static_cast<double>(kernels::float_of_bf16_bits(weights[column * inner + k]));
    return sum;
  };
  std::vector<double> next, kept(4 * flows * width);
  for (std::int64_t f = 0; f < flows; ++f)
    for (std::int32_t j = 0; j < width; ++j) {
      double x[3], m[3];
      for (int gate = 0; gate < 3; ++gate) {
        x[gate] = product(input, weight_input, f, gate * width + j, columns) + bias_x[gate * width + j];
        m[gate] = product(operand, weight_hidden, f, gate * width + j, width) + bias_h[gate * width + j];
      }
      const double r = logistic(x[0] + m[0]), z = logistic(x[1] + m[1]), n = std::tanh(x[2] + r * m[2]);
      const std::size_t keep = 4 * f * width + j;
      next.push_back((1 - z) * n + z * hidden[f * width + j]);
      kept[keep] = r, kept[keep + width] = z, kept[keep + 2 * width] = n, kept[keep + 3 * width] = m[2];
    }
  Floats state_above = spread(flows * width, 9, 14);
  state_above.front() = state_above.back() = std::numeric_limits<float>::quiet_NaN();
  const Buffer above(state_above, "state above", 16);
  const auto check = [&](auto kernel, FusedTile tile, Order order) {
    const Buffer got_next(flows * width), got_kept(4 * flows * width);
    const GuardedBuffer<std::uint16_t> rounded(flows * width), rounded_above(flows * width, "operand above", 8);
    const GuardedBuffer<std::int32_t> hits(std::vector<std::int32_t>(flows, 7));
    simt::run_clean(kernel, {kernels::blocks_of(width, channels_of(tile)), kernels::blocks_of(flows, flows_of(tile))},
                    kernel.kMaxThreads, order,
                    FusedGatesArguments{.shape = GetParam(),
                                        .input_width = columns,
                                        .input = input.data(),
                                        .hidden_operand = operand.data(),
                                        .weight_input = weight_input.data(),
                                        .weight_hidden = weight_hidden.data(),
                                        .bias_input = bias_x.data(),
                                        .bias_hidden = bias_h.data(),
                                        .hidden = hidden.data(),
                                        .next = got_next.data(),
                                        .operand = rounded.data(),
                                        .kept = got_kept.data(),
                                        .hidden_above = above.data(),
                                        .operand_above = rounded_above.data(),
                                        .guard_hits = hits.data()},
                    static_cast<std::size_t>(kernel.documented_shared_bytes()));
    expect_close(got_next, next, 4e-6);
    expect_close(got_kept, kept, 2e-5);
    for (std::size_t i = 0; i < got_next.size(); ++i) {
      ASSERT_EQ(rounded[i], kernels::bf16_bits(got_next[i])) << i;
      ASSERT_EQ(rounded_above[i], kernels::bf16_bits(kernels::guard(above[i], kGuardLimit))) << i;
    }
    for (std::int64_t f = 0; f < flows; ++f)
      ASSERT_EQ(hits[f], 7 + (f == 0) + (f == flows - 1)) << "flow " << f << ", added to what was counted before";
  };
  for (const Order order : simt::kAllOrders) {
    check(FusedGatesSmall{}, FusedTile::kSmall, order);
    check(FusedGatesLarge{}, FusedTile::kLarge, order);
    check(FusedGatesTall{}, FusedTile::kTall, order);
  }
}

TEST_P(CarrierKernels, MaskStopsGradientsWhereTheGuardActed) {
  const auto [flows, features, width, layers] = GetParam();
  const std::size_t states = layers * flows * width;
  const Buffer o(spread(flows * features, 1, 15)), e(spread(flows, 2, 15)), h(spread(states, 3, 15));
  const Buffer grad_input(spread(flows * input_width(GetParam()), 4)), direct(spread(states, 5)),
      product(spread(states, 6));
  for (const Order order : simt::kAllOrders) {
    const Buffer grad_o(o.size()), grad_e(flows), grad_h(states);
    run_warp_a_flow(Mask{}, order,
                    MaskArguments{.shape = GetParam(),
                                  .features = o.data(),
                                  .energy = e.data(),
                                  .hidden = h.data(),
                                  .grad_input = grad_input.data(),
                                  .grad_direct = direct.data(),
                                  .grad_product = product.data(),
                                  .grad_features = grad_o.data(),
                                  .grad_energy = grad_e.data(),
                                  .grad_hidden = grad_h.data()});
    for (std::int64_t f = 0; f < flows; ++f) {
      const float* row = grad_input.data() + f * input_width(GetParam());
      for (std::int32_t j = 0; j < features; ++j)
        ASSERT_EQ(grad_o[f * features + j], std::abs(o[f * features + j]) <= 10 ? row[j] : 0.0f);
      ASSERT_EQ(grad_e[f], std::abs(e[f]) <= 10 ? row[features] : 0.0f);
    }
    for (std::size_t i = 0; i < states; ++i) ASSERT_EQ(grad_h[i], std::abs(h[i]) <= 10 ? direct[i] + product[i] : 0.0f);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CarrierKernels,
                         testing::Values(Shape{1, 0, 1, 1}, Shape{1, 3, 4, 2}, Shape{5, 31, 33, 2},
                                         Shape{11, 64, 32, 3}, Shape{13, 7, 67, 2}),
                         [](const auto& info) {
                           return std::to_string(info.param.flows) + "flows" + std::to_string(info.param.width) +
                                  "wide";
                         });

// Below and above a tile in either direction, one slice along k and several, the last one partial.
INSTANTIATE_TEST_SUITE_P(Shapes, FusedCarrier,
                         testing::Values(Shape{1, 3, 8, 1}, Shape{11, 64, 32, 1}, Shape{131, 20, 72, 1},
                                         Shape{128, 64, 64, 1}));

TEST(GruChannel, KeepsTheStateWithinOne) {
  for (const float h : {-1.0f, -0.25f, 0.0f, 0.5f, 1.0f})
    for (const float z : {-100.0f, -1.0f, 0.0f, 3.0f, 100.0f})
      for (const float n : {-1e30f, -2.0f, 0.0f, 2.0f, 1e30f}) {
        const float next = gru_channel(0.3f, z, n, 0.7f, h).next;
        EXPECT_LE(std::abs(next), 1.0f) << h << ' ' << z << ' ' << n;
      }
}

// Energy-flow specification C17: one channel, one input.
// The guard on the stored state always acts; the one on what goes above in the top layer only.
TEST(GruChannel, GradientStopsWhereAGuardActed) {
  const auto gradient = [](float hidden, bool top) {
    return guarded_channel_gradient(0.5f, 1.0f, 0.0f, 0.0f, hidden, 3.0f, 5.0f, top).hidden;  // next = hidden
  };
  EXPECT_EQ(gradient(10.0f, true), 8.0f);
  EXPECT_EQ(gradient(11.0f, true), 0.0f);
  EXPECT_EQ(gradient(11.0f, false), 5.0f);
}

TEST(GruChannel, WorkedExample) {
  const float x = 0.7f, h = -0.4f;
  const Channel<float> c = gru_channel(0.5f * x - 0.3f * h, 0.2f * x + 0.8f * h, 1.1f * x, 0.6f * h, h);
  EXPECT_NEAR(c.reset, 0.61538376, 1e-6);
  EXPECT_NEAR(c.update, 0.45512111, 1e-6);
  EXPECT_NEAR(c.candidate, 0.55273288, 1e-6);
  EXPECT_NEAR(c.next, 0.11912403, 1e-6);
  const ChannelGradient<float> g = gru_channel_gradient(c.reset, c.update, c.candidate, 0.6f * h, h, 1.0f);
  EXPECT_NEAR(g.hidden - 0.3f * g.reset_sum + 0.8f * g.update_sum + 0.6f * g.candidate_hidden, 0.41227910, 1e-6);
  EXPECT_NEAR(0.5f * g.reset_sum + 0.2f * g.update_sum + 1.1f * g.candidate_input, 0.35825142, 1e-6);
}

}  // namespace
}  // namespace twinbench::energy_flow::energy_carrier

// energy_flow.flow_forward's products on the host executor in every thread order: each against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "harness/simt/kernel_testing.h"
#include "kernels/energy_flow/flow_forward/kernel.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

using simt::Buffer;
using Integers = simt::GuardedBuffer<std::int32_t>;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }
Buffer wide(const simt::Floats& values) { return Buffer(values, "values", 16); }

// [tiles][inner][96] of value(row of a third, third, inner), zeros beyond `rows` and `inners`.
template <class Value>
simt::Floats in_tiles(std::int64_t rows, int each, std::int64_t inner, std::int64_t inners, Value value) {
  const std::int64_t tiles = (rows + each - 1) / each;
  simt::Floats packed(size(tiles * inner * kTileColumns));
  for (std::int64_t tile = 0; tile < tiles; ++tile)
    for (std::int64_t k = 0; k < inners; ++k)
      for (int third = 0; third < kTileColumns / each; ++third)
        for (int c = 0; c < each && tile * each + c < rows; ++c)
          packed[size((tile * inner + k) * kTileColumns + third * each + c)] = value(tile * each + c, third, k);
  return packed;
}

using Shape = std::array<std::int32_t, 4>;  // rows, rows that there can be, input, width
class Products : public testing::TestWithParam<Shape> {};

// What a product makes of an operand.
double operand(float x, bool tf32) { return tf32 ? kernels::float_of_bits(simt::tf32_bits(x)) : x; }

// stores: states are read and left in bf16.
template <class Kernel>
void recurrent_products(const Shape& shape, Kernel kernel, bool stores, bool tf32) {
  const auto [total, rows, input, width] = shape;
  const auto input_stride = padded_width(input), stride = padded_width(width);
  const std::int64_t inner = input_stride + stride, gates = std::int64_t{3} * width;
  const simt::Floats of_input = simt::spread(gates * input, 1, 0.4f), of_state = simt::spread(gates * width, 2, 0.4f),
                     bias = simt::spread(4 * width, 3);
  simt::Floats weights = in_tiles(width, kTileChannels, inner, input, [&](std::int64_t row, int gate, std::int64_t k) {
    return of_input[size((gate * width + row) * input + k)];
  });
  const simt::Floats second = in_tiles(
      width, kTileChannels, stride, width,
      [&](std::int64_t row, int gate, std::int64_t k) { return of_state[size((gate * width + row) * width + k)]; });
  const std::int64_t tiles = (width + kTileChannels - 1) / kTileChannels;
  simt::Floats biases(size(tiles * 4 * kTileChannels));
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    std::copy_n(second.begin() + tile * stride * kTileColumns, stride * kTileColumns,
                weights.begin() + (tile * inner + input_stride) * kTileColumns);
    for (int sum = 0; sum < 4; ++sum)
      for (int c = 0; c < kTileChannels && tile * kTileChannels + c < width; ++c)
        biases[size((tile * 4 + sum) * kTileChannels + c)] = bias[size(sum * width + tile * kTileChannels + c)];
  }
  simt::Floats x = simt::spread(rows * input_stride, 4), state = simt::spread(rows * stride, 5);
  for (std::int32_t row = 0; row < rows; ++row) {
    std::fill_n(x.begin() + row * input_stride + input, input_stride - input, 0.0f);
    std::fill_n(state.begin() + row * stride + width, stride - width, 0.0f);
  }
  state[0] = kNaN;  // guarded: 0, and the next one 10
  if (rows > 1) state[size(stride)] = 25.0f;
  std::vector<std::int32_t> source(size(rows), 1 << 28);  // beyond the last row: not to be followed
  for (std::int32_t row = 0; row < total; ++row) source[size(row)] = row % 5 == 3 ? kNoSource : (row * 7 + 1) % rows;
  if (total > 1) source[0] = 0, source[1] = 1;
  const auto guarded = [&](std::int32_t row, std::int64_t k) {
    return row < 0 ? 0.0f : kernels::operand(kernels::guard(state[size(row * stride + k)], 10.0f), stores);
  };
  std::vector<std::uint16_t> bits(size(rows * stride));
  std::transform(state.begin(), state.end(), bits.begin(), [](float x) { return kernels::bf16_bits(x); });
  for (const auto order : simt::kAllOrders) {
    const Buffer in = wide(x), before = wide(state), packed = wide(weights), added = wide(biases),
                 out = wide(simt::Floats(size(rows * stride), -7.0f));
    const simt::GuardedBuffer<std::uint16_t> stored(bits, "stored", 8);
    const simt::GuardedBuffer<std::uint16_t> out_stored(std::vector<std::uint16_t>(bits.size(), 7), "out_stored", 8);
    const Integers from(source), count(std::vector<std::int32_t>{total});
    const TileArguments a{.total = count.data(),
                          .rows = rows,
                          .input = in.data(),
                          .state = stores ? nullptr : before.data(),
                          .stored = stores ? stored.data() : nullptr,
                          .out_stored = stores ? out_stored.data() : nullptr,
                          .input_stride = static_cast<std::int32_t>(input_stride),
                          .stride = static_cast<std::int32_t>(stride),
                          .source = from.data(),
                          .weights = packed.data(),
                          .biases = added.data(),
                          .out = out.data()};
    const auto blocks = static_cast<unsigned>(channel_tiles(a) * ((rows + kTileFlows - 1) / kTileFlows));
    simt::run_clean(kernel, blocks, kTileThreads, order, a, kTileBytes);
    for (std::int32_t row = 0; row < rows; ++row)
      for (std::int32_t c = 0; c < stride; ++c) {
        const float got = out[size(row * stride + c)];
        const std::uint16_t left = row >= total || !stores ? 7 : kernels::bf16_bits(got);
        ASSERT_EQ(out_stored[size(row * stride + c)], left) << row << ' ' << c;
        if (row >= total || c >= width) {
          ASSERT_EQ(got, row >= total ? -7.0f : 0.0f) << row << ' ' << c;
          continue;
        }
        double sums[4];
        for (int sum = 0; sum < 4; ++sum) sums[sum] = bias[size(sum * width + c)];
        for (int gate = 0; gate < 3; ++gate) {
          for (std::int32_t k = 0; k < input; ++k)
            sums[gate] += operand(of_input[size((gate * width + c) * input + k)], tf32) *
                          operand(x[size(row * input_stride + k)], tf32);
          for (std::int32_t k = 0; k < width; ++k)
            sums[gate == 2 ? 3 : gate] += operand(of_state[size((gate * width + c) * width + k)], tf32) *
                                          operand(guarded(source[size(row)], k), tf32);
        }
        const double due =
            energy_carrier::gru_channel<double>(sums[0], sums[1], sums[2], sums[3], guarded(source[size(row)], c)).next;
        ASSERT_NEAR(got, due, 2e-5) << row << ' ' << c;
      }
  }
}

TEST_P(Products, RecurrentTiles) { recurrent_products(GetParam(), RecurrentTiles{}, false, false); }
TEST_P(Products, RecurrentTilesOfStoredStates) { recurrent_products(GetParam(), StoredRecurrentTiles{}, true, false); }
TEST_P(Products, RecurrentTilesByTensorCores) { recurrent_products(GetParam(), RecurrentTilesTf32{}, false, true); }
TEST_P(Products, RecurrentTilesOfStoredStatesByTensorCores) {
  recurrent_products(GetParam(), StoredRecurrentTilesTf32{}, true, true);
}

// In bf16 mode the state is guarded, then rounded.
template <class Kernel>
void head_products(const Shape& shape, Kernel kernel, bool round, bool tf32) {
  const auto [total, rows, input, width] = shape;
  const std::int32_t columns = input / 8 * 8 + 8;
  const auto stride = padded_width(width);
  const simt::Floats matrix = simt::spread(columns * width, 1);
  simt::Floats state = simt::spread(rows * stride, 2);
  if (rows > 1) state[size(stride)] = 25.0f;
  for (const auto order : simt::kAllOrders) {
    const Buffer before = wide(state), out = wide(simt::Floats(size(rows * columns), -7.0f)),
                 weights =
                     wide(in_tiles(columns, kTileColumns, stride, width, [&](std::int64_t row, int, std::int64_t k) {
                       return matrix[size(row * width + k)];
                     }));
    const Integers count(std::vector<std::int32_t>{total});
    const TileArguments a{.total = count.data(),
                          .rows = rows,
                          .state = before.data(),
                          .stride = static_cast<std::int32_t>(stride),
                          .weights = weights.data(),
                          .out = out.data(),
                          .columns = columns};
    const auto blocks = static_cast<unsigned>(column_tiles(a) * ((rows + kTileFlows - 1) / kTileFlows));
    simt::run_clean(kernel, blocks, kTileThreads, order, a, kTileBytes);
    for (std::int32_t row = 0; row < rows; ++row)
      for (std::int32_t c = 0; c < columns; ++c) {
        double due = row < total ? 0 : -7;
        for (std::int32_t k = 0; k < width && row < total; ++k)
          due += operand(matrix[size(c * width + k)], tf32) *
                 operand(kernels::operand(kernels::guard(state[size(row * stride + k)], 10.0f), round), tf32);
        ASSERT_NEAR(out[size(row * columns + c)], due, 2e-5) << row << ' ' << c;
      }
  }
}
TEST_P(Products, Heads) { head_products(GetParam(), HeadTiles{}, false, false); }
TEST_P(Products, HeadsOfRoundedStates) { head_products(GetParam(), HeadTilesBfloat{}, true, false); }
TEST_P(Products, HeadsByTensorCores) { head_products(GetParam(), HeadTilesTf32{}, false, true); }

INSTANTIATE_TEST_SUITE_P(Shapes, Products,
                         testing::Values(Shape{1, 1, 1, 1}, Shape{63, 64, 16, 16}, Shape{65, 130, 7, 33},
                                         Shape{64, 64, 100, 32}, Shape{0, 70, 5, 6}, Shape{129, 129, 103, 47}));

// The mapper's layers in bf16 mode: the first one rounds what it is given, the last one gives energies.
TEST(MapperProducts, RoundTheirOperands) {
  namespace layer = output_collector;
  constexpr std::int64_t kRows = 3, kColumns = 21;
  for (const std::int64_t inner : {36, 37})
    for (const bool last : {false, true})
      for (const auto order : simt::kAllOrders) {
        const simt::Floats weights = simt::spread(kColumns * inner, 5, 0.2f);
        std::vector<std::uint16_t> rounded;
        for (const float weight : weights) rounded.push_back(kernels::bf16_bits(weight));
        const simt::GuardedBuffer<std::uint16_t> weight(rounded);
        const Buffer x(simt::spread(kRows * inner, 6)), bias(simt::spread(kColumns, 7)),
            cell_offset(simt::spread(kColumns, 8)), scale(simt::Floats{0.75f}), offset(simt::Floats{0.125f}),
            out(size(kRows * kColumns)), moments(size(2 * kRows * layer::pieces_of(kColumns))),
            gain(simt::spread(inner, 9)), shift(simt::spread(inner, 10)),
            given(size(2 * kRows * layer::pieces_of(inner)));
        for (std::int64_t row = 0; last && row < kRows; ++row)
          for (std::int64_t piece = 0; piece < layer::pieces_of(inner); ++piece) {  // moments: 0 and 1
            const std::int64_t at = row * layer::pieces_of(inner) + piece;
            given[size(at)] = 0.0f;
            given[size(kRows * layer::pieces_of(inner) + at)] =
                static_cast<float>(std::min<std::int64_t>(16, inner - 16 * piece));
          }
        layer::LayerArguments a{.rows = kRows,
                                .inner = inner,
                                .columns = kColumns,
                                .x = x.data(),
                                .weight_bf16 = weight.data(),
                                .bias = bias.data(),
                                .out = out.data(),
                                .out_moments = last ? nullptr : moments.data(),
                                .scale = scale.data(),
                                .offset = offset.data(),
                                .cell_offset = cell_offset.data()};
        if (last) a.gain = gain.data(), a.shift = shift.data(), a.moments = given.data();
        const auto start = [&](auto kernel) {
          simt::run_clean(kernel, {static_cast<unsigned>(layer::pieces_of(kColumns)), 1, 1}, layer::kLayerThreads,
                          order, a, layer::kStagedBytes);
        };
        if (last)
          inner % 4 == 0 ? start(MapperSurfaceBfloat{}) : start(MapperSurfaceBfloatAnyWidth{});
        else
          inner % 4 == 0 ? start(MapperLayerBfloat{}) : start(MapperLayerBfloatAnyWidth{});
        for (std::int64_t row = 0; row < kRows; ++row)
          for (std::int64_t c = 0; c < kColumns; ++c) {
            double due = bias[size(c)];
            for (std::int64_t k = 0; k < inner; ++k) {
              float value = x[size(row * inner + k)];
              if (last) value = value / std::sqrt(1.00001f) * gain[size(k)] + shift[size(k)];
              due += double{kernels::round_to_bf16(value)} * kernels::round_to_bf16(weights[size(c * inner + k)]);
            }
            due = last ? 0.75 * std::tanh(due) + 0.125 + cell_offset[size(c)] : kernels::gelu(due);
            // In the last layer a last bit of the normalisation may round an operand the other way.
            ASSERT_NEAR(out[size(row * kColumns + c)], due, last ? 2e-3 : 1e-5) << row << ' ' << c;
          }
      }
}

}  // namespace
}  // namespace twinbench::energy_flow::flow_forward

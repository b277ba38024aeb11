// Embedding mapper kernels on the host executor, in every thread order, against the host's row functions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "harness/simt/host.h"
#include "kernels/energy_flow/embedding_mapper/kernel.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

constexpr unsigned kSeed = 20240607;
using Floats = std::vector<float>;
using Buffer = simt::GuardedBuffer<float>;

Floats random_values(std::int64_t count, unsigned stream) {
  std::mt19937 generator(kSeed + stream);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

void expect_close(const Buffer& actual, const Floats& expected, const char* name, float tolerance = 1e-5f) {
  float scale = 1e-30f;
  for (const float value : expected) scale = std::max(scale, std::fabs(value));
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * scale) << name << " element " << i << ", seed " << kSeed;
}

struct Shape {
  std::int64_t rows, width;
  bool round;
};

class MapperKernel : public testing::TestWithParam<Shape> {
 protected:
  const std::int64_t rows = GetParam().rows, width = GetParam().width, count = rows * width;
  const bool round = GetParam().round;
  const Floats bias = random_values(width, 1), gain = random_values(width, 2), shift = random_values(width, 3);
  const Floats product = random_values(count, 4), gradient = random_values(count, 5);
  Buffer bias_buffer{bias}, gain_buffer{gain}, shift_buffer{shift};
  Buffer normal{product}, hidden{product.size()}, before{product.size()}, inverse{static_cast<std::size_t>(rows)};
  simt::GuardedBuffer<std::uint16_t> rounded{product.size()};

  template <class Kernel, class Arguments>
  void launch(Kernel kernel, std::int64_t blocks, int threads, simt::Order order, const Arguments& arguments) {
    const auto report = simt::launch_on_host(kernel, blocks, threads, 0, {.order = order, .seed = kSeed}, arguments);
    EXPECT_TRUE(report.ok()) << report.text();
  }
  Operands operands(Buffer& fp32) { return round ? Operands{nullptr, rounded.data()} : Operands{fp32.data(), nullptr}; }
};

TEST_P(MapperKernel, ActivationAndItsBackwardMatchTheRowFunctions) {
  Floats normals = product, hiddens(product.size()), befores(product.size()), inverses(static_cast<std::size_t>(rows));
  Floats grad_products(product.size()), bias_sums(bias.size()), gain_sums(bias.size()), shift_sums(bias.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t at = row * width;
    inverses[static_cast<std::size_t>(row)] = activation_row(width, normals.data() + at, bias.data(), gain.data(), shift.data(),
                                                             round, befores.data() + at, hiddens.data() + at);
    activation_backward_row(width, gradient.data() + at, normals.data() + at, befores.data() + at, gain.data(),
                            inverses[static_cast<std::size_t>(row)], grad_products.data() + at);
    for (std::size_t i = 0; i < bias.size(); ++i) {
      const std::size_t element = static_cast<std::size_t>(at) + i;
      bias_sums[i] += grad_products[element];
      gain_sums[i] += gradient[element] * normals[element];
      shift_sums[i] += gradient[element];
    }
  }
  for (const simt::Order order : simt::kAllOrders) {
    std::copy(product.begin(), product.end(), normal.begin());
    ActivationArguments a{rows,          width,           bias_buffer.data(), gain_buffer.data(), shift_buffer.data(),
                          normal.data(), operands(hidden), before.data(),      inverse.data()};
    launch(Activation{}, rows, kRowThreads, order, a);
    expect_close(normal, normals, "normal");
    expect_close(before, befores, "before");
    expect_close(inverse, inverses, "inverse");
    if (round)
      for (std::size_t i = 0; i < product.size(); ++i) hidden[i] = float_of_bf16_bits(rounded[i]);
    expect_close(hidden, hiddens, "hidden", round ? 1e-2f : 1e-5f);

    Buffer grad_hidden(gradient), grad_product(product.size()), grad_bias(bias.size()), grad_gain(bias.size()),
        grad_shift(bias.size());
    const Operands grad_operands{nullptr, round ? rounded.data() : nullptr};
    ActivationBackwardArguments b{rows,           width,         gain_buffer.data(),  normal.data(),
                                  before.data(),  inverse.data(), grad_hidden.data(), grad_product.data(),
                                  grad_operands,  grad_bias.data(), grad_gain.data(), grad_shift.data()};
    launch(ActivationBackward{}, rows, kRowThreads, order, b);
    launch(ActivationColumns{}, column_blocks(width), kElementThreads, order, b);
    expect_close(grad_product, grad_products, "grad_product");
    for (std::size_t i = 0; round && i < grad_products.size(); ++i)
      ASSERT_EQ(float_of_bf16_bits(rounded[i]), round_to_bf16(grad_product[i])) << i;
    expect_close(grad_bias, bias_sums, "grad_bias");
    expect_close(grad_gain, gain_sums, "grad_gain");
    expect_close(grad_shift, shift_sums, "grad_shift");
  }
}

TEST_P(MapperKernel, SurfaceAndItsBackwardMatchTheFormula) {
  const float scale = 1.25f, offset = -0.5f;
  Floats surfaces(product.size()), grad_products(product.size()), bias_sums(bias.size()), cell_sums(bias.size());
  float scale_sum = 0, offset_sum = 0;
  for (std::size_t i = 0; i < product.size(); ++i) {
    const std::size_t cell = i % bias.size();
    const double bounded = std::tanh(static_cast<double>(product[i]) + static_cast<double>(bias[cell]));
    surfaces[i] = static_cast<float>(bounded * 1.25 - 0.5 + static_cast<double>(shift[cell]));
    grad_products[i] = static_cast<float>(static_cast<double>(gradient[i]) * 1.25 * (1 - bounded * bounded));
    bias_sums[cell] += grad_products[i];
    cell_sums[cell] += gradient[i];
    scale_sum += gradient[i] * static_cast<float>(bounded);
    offset_sum += gradient[i];
  }
  Buffer scale_buffer(Floats{scale}), offset_buffer(Floats{offset});
  for (const simt::Order order : simt::kAllOrders) {
    std::copy(product.begin(), product.end(), normal.begin());
    Buffer surface(product.size());
    launch(Surface{}, gather_blocks(count), kElementThreads, order,
           SurfaceArguments{rows, width, normal.data(), bias_buffer.data(), shift_buffer.data(), scale_buffer.data(),
                            offset_buffer.data(), surface.data()});
    expect_close(surface, surfaces, "surface");

    // The gradient comes transposed, as a strided view would.
    Buffer strided(gradient.size()), scale_terms(static_cast<std::size_t>(rows)), offset_terms(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < count; ++i)
      strided[static_cast<std::size_t>(i % width * rows + i / width)] = gradient[static_cast<std::size_t>(i)];
    Buffer grad_bias(bias.size()), grad_cell(bias.size()), grad_scale(1), grad_offset(1);
    const Operands grad_operands{nullptr, round ? rounded.data() : nullptr};
    SurfaceBackwardArguments b{rows, width, bias_buffer.data(), scale_buffer.data(), strided.data(), 1, rows,
                               normal.data(), grad_operands, scale_terms.data(), offset_terms.data(), grad_bias.data(),
                               grad_cell.data(), grad_scale.data(), grad_offset.data()};
    launch(SurfaceBackward{}, rows, kRowThreads, order, b);
    launch(SurfaceColumns{}, column_blocks(width), kElementThreads, order, b);
    expect_close(normal, grad_products, "grad_product");
    expect_close(grad_bias, bias_sums, "grad_bias");
    expect_close(grad_cell, cell_sums, "grad_cell");
    EXPECT_NEAR(grad_scale[0], scale_sum, 1e-4f * std::sqrt(static_cast<float>(count)));
    EXPECT_NEAR(grad_offset[0], offset_sum, 1e-4f * std::sqrt(static_cast<float>(count)));
  }
}

TEST_P(MapperKernel, GatherReadsAnyStrides) {
  Buffer from(product), to(product.size());
  for (const simt::Order order : simt::kAllOrders) {
    GatherArguments a{rows, width, 1, rows, from.data(), operands(to)};  // `from` read as if transposed
    launch(Gather{}, gather_blocks(count), kElementThreads, order, a);
    for (std::int64_t i = 0; i < count; ++i) {
      const float expected = product[static_cast<std::size_t>(i / width + i % width * rows)];
      const auto at = static_cast<std::size_t>(i);
      ASSERT_EQ(round ? float_of_bf16_bits(rounded[at]) : to[at], round ? round_to_bf16(expected) : expected) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, MapperKernel,
                         testing::Values(Shape{1, 1, false}, Shape{3, 8, false}, Shape{2, 512, false}, Shape{3, 513, false},
                                         Shape{5, 257, true}, Shape{2, 1031, false}));

}  // namespace
}  // namespace twinbench::energy_flow::embedding_mapper

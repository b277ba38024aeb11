// The embedding mapper's last layer on the host executor, in every thread order, against the formula.
#include "kernels/energy_flow/embedding_mapper/kernel.h"
#include "harness/simt/kernel_testing.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

using simt::Buffer;
using simt::expect_close_to_scale;
using simt::Floats;
using simt::spread;

struct Shape {
  std::int64_t rows, width;
  bool round;
};

class MapperKernel : public testing::TestWithParam<Shape> {};

TEST_P(MapperKernel, SurfaceAndItsBackwardMatchTheFormula) {
  const auto [rows, width, round] = GetParam();
  const std::int64_t count = rows * width;
  const Floats bias = spread(width, 1), cell_offset = spread(width, 3), product = spread(count, 4, 2);
  const Floats gradient = spread(count, 5, 2);
  Floats surfaces(product.size()), grad_products(product.size()), bias_sums(bias.size()), cell_sums(bias.size());
  float scale_sum = 0, offset_sum = 0;
  for (std::size_t i = 0; i < product.size(); ++i) {
    const std::size_t cell = i % bias.size();
    const double bounded = std::tanh(static_cast<double>(product[i]) + static_cast<double>(bias[cell]));
    surfaces[i] = static_cast<float>(bounded * 1.25 - 0.5 + static_cast<double>(cell_offset[cell]));
    grad_products[i] = static_cast<float>(static_cast<double>(gradient[i]) * 1.25 * (1 - bounded * bounded));
    bias_sums[cell] += grad_products[i];
    cell_sums[cell] += gradient[i];
    scale_sum += gradient[i] * static_cast<float>(bounded);
    offset_sum += gradient[i];
  }
  // The gradient comes as it is, and transposed, as a strided view would.
  const Buffer strided(gradient.size()), contiguous(gradient);
  for (std::int64_t i = 0; i < count; ++i) strided[i % width * rows + i / width] = gradient[i];
  const Buffer biases(bias), cells(cell_offset), scale(Floats{1.25f}), offset(Floats{-0.5f});
  const kernels::StridedRows<float> views[] = {{contiguous.data(), width, 1}, {strided.data(), 1, rows}};
  for (int run = 0; run < 6; ++run) {
    const simt::Order order = simt::kAllOrders[run % 3];
    const Buffer values(product), surface(product.size()), scale_terms(surface_terms(rows, width)),
        offset_terms(surface_terms(rows, width)), grad_bias(bias.size()), grad_cell(bias.size()), grad_scale(1),
        grad_offset(1);
    const simt::GuardedBuffer<std::uint16_t> rounded(product.size());
    const SurfaceArguments<float> a{.rows = rows,
                                    .width = width,
                                    .bias = biases.data(),
                                    .cell_offset = cells.data(),
                                    .scale = scale.data(),
                                    .offset = offset.data(),
                                    .product = {values.data(), round ? rounded.data() : nullptr},
                                    .surface = surface.data(),
                                    .gradient = views[run / 3],
                                    .scale_terms = scale_terms.data(),
                                    .offset_terms = offset_terms.data(),
                                    .grad_bias = grad_bias.data(),
                                    .grad_cell = grad_cell.data(),
                                    .grad_scale = grad_scale.data(),
                                    .grad_offset = grad_offset.data()};
    simt::run_clean(Surface{}, {kernels::blocks_of(width, kernels::kCopyPiece), rows}, kernels::kPieceThreads, order,
                    a);
    simt::run_clean(SurfaceBackward{}, {kernels::blocks_of(width, kSurfacePiece), rows}, kSurfaceThreads, order, a);
    simt::run_clean(SurfaceColumns{}, kernels::blocks_of(width, kernels::kSumColumns), kernels::kSumThreads, order, a);
    expect_close_to_scale(surface, surfaces, 1e-5, "surface");
    expect_close_to_scale(values, grad_products, 1e-5, "grad_product");
    expect_close_to_scale(grad_bias, bias_sums, 1e-5, "grad_bias");
    expect_close_to_scale(grad_cell, cell_sums, 1e-5, "grad_cell");
    EXPECT_NEAR(grad_scale[0], scale_sum, 1e-4f * std::sqrt(static_cast<float>(count)));
    EXPECT_NEAR(grad_offset[0], offset_sum, 1e-4f * std::sqrt(static_cast<float>(count)));
    for (std::size_t i = 0; round && i < product.size(); ++i) ASSERT_EQ(rounded[i], kernels::bf16_bits(values[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, MapperKernel,
                         testing::Values(Shape{1, 1, false}, Shape{3, 8, false}, Shape{2, 512, false},
                                         Shape{3, 513, false}, Shape{5, 257, true}, Shape{2, 1031, false},
                                         Shape{7, 1036, true}));

}  // namespace
}  // namespace twinbench::energy_flow::embedding_mapper

// Arguments and launchers of the embedding mapper's CUDA kernels, all that lies between its matrix products.
#pragma once

#include <cstdint>

#include "kernels/common/stream.h"

namespace twinbench::energy_flow::embedding_mapper {

using namespace kernels;  // NOLINT: the shared layer

// The operands of the next product: fp32, or bf16 bits in that mode. Exactly one of the two is set.
struct Operands {
  float* fp32 = nullptr;
  std::uint16_t* bf16 = nullptr;
};

// Copies a [rows, columns] matrix of any strides (in elements) into contiguous operands.
struct GatherArguments {
  std::int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 0;
  const float* from = nullptr;
  Operands to;
};

// hidden = operand(LN(GELU(product + bias))). All matrices [rows, width], contiguous.
struct ActivationArguments {
  std::int64_t rows = 0, width = 0;
  const float *bias = nullptr, *gain = nullptr, *shift = nullptr;  // [width]
  float* product = nullptr;  // on entry the matrix product, on exit the normalised values
  Operands hidden;
  float* before = nullptr;   // product + bias; backward only, else null
  float* inverse = nullptr;  // [rows], 1 / deviation; backward only, else null
};

// From the gradient of hidden to that of the product, and its column sums.
struct ActivationBackwardArguments {
  std::int64_t rows = 0, width = 0;
  const float *gain = nullptr, *normal = nullptr, *before = nullptr, *inverse = nullptr;
  const float* grad_hidden = nullptr;  // [rows, width]
  float* grad_product = nullptr;       // [rows, width]
  Operands operands;                   // grad_product rounded, bf16 mode; fp32 stays null: grad_product is the operand
  float *grad_bias = nullptr, *grad_gain = nullptr, *grad_shift = nullptr;  // [width]
};

// surface = tanh(product + bias) * scale + offset + cell_offset, [rows, width].
struct SurfaceArguments {
  std::int64_t rows = 0, width = 0;
  const float *product = nullptr, *bias = nullptr, *cell_offset = nullptr;  // [rows, width], [width], [width]
  const float *scale = nullptr, *offset = nullptr;                          // [1]
  float* surface = nullptr;
};

struct SurfaceBackwardArguments {
  std::int64_t rows = 0, width = 0;
  const float *bias = nullptr, *scale = nullptr;              // [width], [1]
  const float* gradient = nullptr;                            // of the surface, any strides
  std::int64_t gradient_row_stride = 0, gradient_column_stride = 0;
  float* product = nullptr;                                   // on exit its gradient
  Operands operands;                                          // that gradient rounded, bf16 mode
  float* scale_terms = nullptr;                               // [rows], scratch
  float* offset_terms = nullptr;                              // [rows], scratch
  float *grad_bias = nullptr, *grad_cell = nullptr;           // [width]
  float *grad_scale = nullptr, *grad_offset = nullptr;        // [1]
};

// One kernel each; the backward ones two (rows, then columns). All throw CudaError if the launch is refused.
void launch_gather(const GatherArguments& arguments, Stream stream);
void launch_activation(const ActivationArguments& arguments, Stream stream);
void launch_activation_backward(const ActivationBackwardArguments& arguments, Stream stream);
void launch_surface(const SurfaceArguments& arguments, Stream stream);
void launch_surface_backward(const SurfaceBackwardArguments& arguments, Stream stream);

}  // namespace twinbench::energy_flow::embedding_mapper

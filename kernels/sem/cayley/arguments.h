// Arguments and launchers of sem.cayley's kernels. No CUDA headers, so that optimized/ stays host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/common/grid.h"
#include "kernels/sem/common/edges.h"

namespace twinbench::sem::cayley {

constexpr int kMostDim = 384;  // whose operand tile fits into the smaller card's shared memory
constexpr int kMostScales = 16;
constexpr float kMatrixScale = 0x1p12f;  // of the packed matrix: its entries are at most 1, and small ones stay normal

// How a product's operands are held: as two halves each, whose three larger products are as good as fp32's, or as one,
// whose eleven bits are TF32's.
enum class Operand { kSplit, kSingle };
constexpr int rows_of(Operand operand) { return operand == Operand::kSplit ? 32 : 64; }  // of a block

// The numbers of columns and of inner steps are multiples of sixteen in the packed matrix.
TWINBENCH_HOST_DEVICE constexpr std::int64_t padded(std::int64_t dim) { return (dim + 15) / 16 * 16; }

// The matrix as the kernel's lanes take it: for every 16 columns and 16 inner values, vectors of four words a lane.
// Column tile t of eight: {real part: words 0, 1; imaginary part: words 0, 1} of the high halves in vector t, or, where
// operands are split, of the high halves in vector 2t and of the low ones in 2t + 1. A word holds two neighbours along
// the inner axis.
constexpr std::int64_t packed_words(std::int64_t dim, Operand operand) {
  const std::int64_t tiles = padded(dim) / 16;
  return tiles * tiles * 32 * (operand == Operand::kSplit ? 16 : 8);
}

// x = U turned(psi), row by row.
struct ForwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0;
  int dim = 0;
  const float* psi = nullptr;             // [2, rows, dim]
  const float* alpha = nullptr;           // [dim]
  const std::uint32_t* matrix = nullptr;  // packed, times kMatrixScale
  float* x = nullptr;                     // [2, rows, dim]
  std::int32_t* nonfinite_rows = nullptr;
  unsigned* handover = nullptr;  // [2]: rows counted so far, finished blocks; 0 between launches
};
void launch_forward(Operand operand, const ForwardArguments& arguments, kernels::Stream stream);

// conj(U) times the given gradient, then the way back through the rotation, and the factors of the edges' product.
struct BackwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0;
  int dim = 0;
  const float* psi = nullptr;  // fields: [2, rows, dim]
  const float* alpha = nullptr;
  const std::uint32_t* matrix = nullptr;
  const float* x = nullptr;
  const float* grad_x = nullptr;
  float* grad_psi = nullptr;
  float* z = nullptr;            // [2, rows, dim]: (g + conj(U) g) / 2
  float* y = nullptr;            // [2, rows, dim]: imaginary part of x + r, then minus the real one
  float* alpha_terms = nullptr;  // [blocks, dim]
};
constexpr std::int64_t backward_blocks(std::int64_t rows) { return kernels::blocks_of(rows, rows_of(Operand::kSplit)); }
void launch_backward(const BackwardArguments& arguments, kernels::Stream stream);

// Wider than kMostDim: the turned rows, whose product with the matrix the library takes.
struct WideForwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0;
  int dim = 0;
  const float* psi = nullptr;     // [2, rows, dim]
  const float* alpha = nullptr;   // [dim]
  const float* matrix = nullptr;  // its first element tells whether all are NaN
  float* turned = nullptr;        // [rows, 2, dim]
  std::int32_t* nonfinite_rows = nullptr;
  unsigned* handover = nullptr;  // [2]: as ForwardArguments'
};
void launch_wide_forward(const WideForwardArguments& arguments, kernels::Stream stream);

// The same as BackwardArguments after the library's product.
struct WideBackwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0;
  int dim = 0;
  const float* psi = nullptr;  // fields: [2, rows, dim]
  const float* alpha = nullptr;
  const float* products = nullptr;  // [2, rows, 2, dim]: grad_x' planes times the real and the imaginary part of U
  const float* x = nullptr;
  const float* grad_x = nullptr;
  float *grad_psi = nullptr, *z = nullptr, *y = nullptr;
  float* alpha_terms = nullptr;  // [blocks, dim]
};
constexpr std::int64_t wide_shared_bytes(std::int64_t dim) { return std::int64_t{4} * dim; }
void launch_wide_backward(const WideBackwardArguments& arguments, kernels::Stream stream);

// From the product C = z^T y to the parameters, and the sums of alpha's terms.
struct ParameterArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t term_rows = 0;
  const float* alpha_terms = nullptr;  // [term_rows, edges.dim]
  float* grad_alpha = nullptr;
  EdgeArguments edges = {};
};
void launch_parameters(const ParameterArguments& arguments, kernels::Stream stream);

}  // namespace twinbench::sem::cayley

// Arguments and launchers of the embedding mapper's own kernels, those of its last layer; its activation layers are
// kernels/common. The CPU path fills the same struct, in double too.
#pragma once

#include "kernels/common/arguments.h"

namespace twinbench::energy_flow::embedding_mapper {

// surface = tanh(product + bias) * scale + offset + cell_offset, [rows, width].
template <class Real>
struct SurfaceArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0, width = 0;
  const Real *bias = nullptr, *cell_offset = nullptr;  // [width]
  const Real *scale = nullptr, *offset = nullptr;      // [1]
  kernels::Operands<Real> product = {};                // [rows, width]; backward: on exit its gradient
  Real *surface = nullptr;                             // [rows, width], forward
  // Backward only.
  kernels::StridedRows<Real> gradient = {};              // [rows, width], of the surface
  Real *scale_terms = nullptr, *offset_terms = nullptr;  // [surface_terms(rows, width)], scratch
  Real *grad_bias = nullptr, *grad_cell = nullptr;       // [width]
  Real *grad_scale = nullptr, *grad_offset = nullptr;    // [1]
};

// Partial sums of the two scalars' gradients on CUDA, one for every block of the row kernel.
constexpr std::int64_t kSurfacePiece = 512;  // elements of a row that one block takes
TWINBENCH_HOST_DEVICE std::int64_t surface_terms(std::int64_t rows, std::int64_t width) {
  return rows * ((width + kSurfacePiece - 1) / kSurfacePiece);
}

// One kernel; the backward pass two (rows, then columns). Throws CudaError if the launch is refused.
void launch_surface(const SurfaceArguments<float> &arguments, kernels::Stream stream);
void launch_surface_backward(const SurfaceArguments<float> &arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::embedding_mapper

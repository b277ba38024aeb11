// What kernels of several components take: matrices, operands, and the shared kernels' arguments and launchers.
// No CUDA headers, so that optimized/ stays host-compiled. The CPU path fills the same structs, in double too.
#pragma once

#include <cstdint>

#include "kernels/common/float_bits.h"
#include "kernels/common/stream.h"

namespace twinbench::kernels {

// The first member of every argument struct: initialisers must then name the members, so that two pointers of one type
// cannot be swapped without a word.
struct DesignatedOnly {
  explicit constexpr DesignatedOnly() = default;
};

// A matrix of any strides (in elements).
template <class Real>
struct StridedRows {
  const Real* data = nullptr;
  std::int64_t row_stride = 0, column_stride = 0;

  TWINBENCH_HOST_DEVICE Real at(std::int64_t row, std::int64_t column) const {
    return data[row * row_stride + column * column_stride];
  }
};

// A result as it is, as the bf16 bits that the next product takes, or both: what is null is not written.
template <class Real>
struct Operands {
  Real* plain = nullptr;
  std::uint16_t* bf16 = nullptr;

  TWINBENCH_HOST_DEVICE void store(std::int64_t at, Real value) const {
    if (plain) plain[at] = value;
    if (bf16) bf16[at] = bf16_bits(static_cast<float>(value));
  }
  TWINBENCH_HOST_DEVICE Operands from(std::int64_t at) const {
    return {plain ? plain + at : nullptr, bf16 ? bf16 + at : nullptr};
  }
};

// Copies a [rows, columns] matrix into contiguous operands.
struct GatherArguments {
  DesignatedOnly designated = DesignatedOnly();
  std::int64_t rows = 0, columns = 0;
  StridedRows<float> from = {};
  Operands<float> to = {};
};
void launch_gather(const GatherArguments& arguments, Stream stream);

// values rounded to bf16.
struct RoundArguments {
  DesignatedOnly designated = DesignatedOnly();
  const float* values = nullptr;
  std::uint16_t* rounded = nullptr;
  std::int64_t count = 0;
};
void launch_round_to_bf16(const RoundArguments& arguments, Stream stream);

// sums[c] = sum over `count` rows that lie `stride` apart, for the first `columns` columns, in a fixed order.
struct ColumnSumArguments {
  DesignatedOnly designated = DesignatedOnly();
  const float* rows = nullptr;
  float* sums = nullptr;  // [columns]
  std::int64_t count = 0;
  std::int32_t columns = 0, stride = 0;
};
void launch_column_sums(const ColumnSumArguments& arguments, Stream stream);

// hidden = operand(LN(GELU(product + bias))), row by row, and its way back. Matrices are [rows, width], contiguous.
template <class Real>
struct ActivationLayer {
  DesignatedOnly designated = DesignatedOnly();
  std::int64_t rows = 0, width = 0;
  const Real *bias = nullptr, *gain = nullptr, *shift = nullptr;  // [width]
  const Real* product = nullptr;
  Operands<Real> hidden = {};
  // Backward only, else null.
  Real* normal = nullptr;   // the normalised values
  Real* inverse = nullptr;  // [rows], 1 / deviation
  const Real* grad_hidden = nullptr;
  Operands<Real> grad_product = {};                                        // plain always, bf16 in that mode
  Real *grad_bias = nullptr, *grad_gain = nullptr, *grad_shift = nullptr;  // [width]
};
void launch_activation(const ActivationLayer<float>& layer, Stream stream);
// Two kernels: rows, then column sums. All launchers throw CudaError if the launch is refused.
void launch_activation_backward(const ActivationLayer<float>& layer, Stream stream);

}  // namespace twinbench::kernels

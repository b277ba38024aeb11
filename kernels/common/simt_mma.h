// Tensor-core tiles of the SIMT layer: warp-wide products of 16 x 8 results, and the loads that feed them.
//
// Fragments lie as the PTX ISA says; with group = lane / 4 and pair = lane % 4 a lane holds
//   sum    of[0], of[1]: row group, columns 2 * pair, 2 * pair + 1;  of[2], of[3]: the same of row group + 8
//   bf16   two neighbours along k in a word, k = 2 * pair (and + 1)
//          left  [16, 16] of[0]: row group; of[1]: row group + 8; of[2], of[3]: the same at k + 8
//          right [16, 8]  of[0]: column group; of[1]: the same at k + 8
//   tf32   left  [16, 8]  of[0]: row group, k = pair; of[1]: row group + 8; of[2], of[3]: the same at k + 4
//          right [8, 8]   of[0]: column group, k = pair; of[1]: the same at k + 4
// All 32 lanes take part in each; none of them orders memory.
#pragma once

#include "kernels/common/float_bits.h"
#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

struct TileSum {
  float of[4];
};
struct LeftTile {
  std::uint32_t of[4];
};
struct RightTile {
  std::uint32_t of[2];
};

// The bits of x rounded to tf32 (10 explicit bits of mantissa, ties away from zero): an operand of multiply_tf32.
TWINBENCH_HOST_DEVICE std::uint32_t tf32_bits(float x) {
#if defined(__CUDA_ARCH__)
  std::uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
#else
  const std::uint32_t bits = bits_of(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;  // infinity and NaN
  return (bits + 0x1000u) & 0xffffe000u;
#endif
}

// sum += left * right, 16 x 8 x 16 in bf16.
template <class Block>
TWINBENCH_DEVICE void multiply_bf16(Block& block, TileSum& sum, const LeftTile& left, const RightTile& right) {
#if defined(__CUDACC__)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum.of[0]), "+f"(sum.of[1]), "+f"(sum.of[2]), "+f"(sum.of[3])
      : "r"(left.of[0]), "r"(left.of[1]), "r"(left.of[2]), "r"(left.of[3]), "r"(right.of[0]), "r"(right.of[1]));
#else
  host_multiply_bf16(block, sum, left, right);
#endif
}

// sum = start + left * right: where sums begin with a bias, no register is copied.
template <class Block>
TWINBENCH_DEVICE void multiply_bf16(Block& block, TileSum& sum, const LeftTile& left, const RightTile& right,
                                    const TileSum& start) {
#if defined(__CUDACC__)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%10, %11, %12, %13};"
      : "=f"(sum.of[0]), "=f"(sum.of[1]), "=f"(sum.of[2]), "=f"(sum.of[3])
      : "r"(left.of[0]), "r"(left.of[1]), "r"(left.of[2]), "r"(left.of[3]), "r"(right.of[0]), "r"(right.of[1]),
        "f"(start.of[0]), "f"(start.of[1]), "f"(start.of[2]), "f"(start.of[3]));
#else
  sum = start;
  host_multiply_bf16(block, sum, left, right);
#endif
}

// sum += left * right, 16 x 8 x 8 in tf32. The hardware ignores the last 13 bits of an operand: round it first.
template <class Block>
TWINBENCH_DEVICE void multiply_tf32(Block& block, TileSum& sum, const LeftTile& left, const RightTile& right) {
#if defined(__CUDACC__)
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum.of[0]), "+f"(sum.of[1]), "+f"(sum.of[2]), "+f"(sum.of[3])
      : "r"(left.of[0]), "r"(left.of[1]), "r"(left.of[2]), "r"(left.of[3]), "r"(right.of[0]), "r"(right.of[1]));
#else
  host_multiply_tf32(block, sum, left, right);
#endif
}

// Four matrices of eight rows of 16 bytes from shared memory (ldmatrix): lane l names row l % 8 of matrix l / 8, and
// gets bytes 4 * (lane % 4) ... + 3 of row lane / 4 of every matrix. Rows start at multiples of 16 bytes.
template <class Block, class Shared>
TWINBENCH_DEVICE void load_matrices(Block& block, Shared row, std::uint32_t (&to)[4]) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row))));
#else
  host_load_matrices(block, row, to);
#endif
}

}  // namespace twinbench::kernels::simt

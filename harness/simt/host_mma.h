// Host forms of kernels/common/simt_mma.h: the lanes' fragments are gathered, multiplied in fp32 and handed back.
#pragma once

#include <cstring>

#include "harness/simt/host_block.h"
#include "kernels/common/simt_mma.h"

namespace twinbench::kernels::simt {

// What one lane brings to a product.
struct MmaLane {
  TileSum* sum;
  const LeftTile* left;
  const RightTile* right;
};
void apply_bf16_product(void* const* lanes);  // of 32 MmaLane
void apply_half_product(void* const* lanes);
void apply_tf32_product(void* const* lanes);

// What one lane brings to a load, and what it gets.
struct MatrixLane {
  std::uint32_t row[4];
  std::uint32_t* to;  // [4]
};
void apply_matrix_load(void* const* lanes);  // of 32 MatrixLane

inline void host_multiply_bf16(HostBlock& block, TileSum& sum, const LeftTile& left, const RightTile& right,
                               Place place = {__builtin_FILE(), __builtin_LINE()}) {
  MmaLane lane{&sum, &left, &right};
  block.warp_collective(WarpOperation::kMmaBf16, lane, apply_bf16_product, place);
}
// Counted with bf16's: the same shape at the same rate.
inline void host_multiply_half(HostBlock& block, TileSum& sum, const LeftTile& left, const RightTile& right,
                               Place place = {__builtin_FILE(), __builtin_LINE()}) {
  MmaLane lane{&sum, &left, &right};
  block.warp_collective(WarpOperation::kMmaBf16, lane, apply_half_product, place);
}
inline void host_multiply_tf32(HostBlock& block, TileSum& sum, const LeftTile& left, const RightTile& right,
                               Place place = {__builtin_FILE(), __builtin_LINE()}) {
  MmaLane lane{&sum, &left, &right};
  block.warp_collective(WarpOperation::kMmaTf32, lane, apply_tf32_product, place);
}

template <class T>
void host_load_matrices(HostBlock& block, SharedPointer<T> row, std::uint32_t (&to)[4],
                        Place place = {__builtin_FILE(), __builtin_LINE()}) {
  struct alignas(16) Row {
    std::uint32_t of[4];
  };
  const Row own = row.template as<Row>()[0];
  MatrixLane lane{{}, to};
  std::memcpy(lane.row, own.of, sizeof lane.row);
  block.warp_collective(WarpOperation::kLoadMatrices, lane, apply_matrix_load, place);
}

}  // namespace twinbench::kernels::simt

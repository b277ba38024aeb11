// How a slice of a bf16 operand lies in shared memory, shared by host and device: kernels copy it there, set-up may lay
// it out so beforehand.
#pragma once

#include "src/common/host_device.h"

namespace twinbench::kernels {

// A slice is kSliceDepth values along k: 64 bytes of a row, four chunks of 16. Chunks change places from row to row, so
// that eight rows of one chunk (a matrix load) and two whole rows (a copy) each meet all 32 banks once.
constexpr int kSliceDepth = 32, kChunk = 8;  // values
constexpr int kChunksARow = kSliceDepth / kChunk;

// Where a chunk of a row lies, and which one lies at a place: the change of places is its own inverse.
TWINBENCH_HOST_DEVICE int swapped_chunk(int row, int chunk) { return chunk ^ (row >> 1 & (kChunksARow - 1)); }
TWINBENCH_HOST_DEVICE int slice_position(int row, int chunk) {  // in values
  return (row * kChunksARow + swapped_chunk(row, chunk)) * kChunk;
}

}  // namespace twinbench::kernels

// Where the whole forward's kernels (C16) keep a flow, what ends one at its sample's stop, and the shape of the tiles
// of their products. Host and device. In the namespace of the component that had them first.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/margins.h"

namespace twinbench::energy_flow::flow_forward {

// A flow's slot is its number among its sample's: it stays there, whatever becomes of it. So a slot says whose it is.
struct Slots {
  std::int64_t samples = 0;
  std::int32_t each = 0;  // flows of a sample that there can be

  TWINBENCH_HOST_DEVICE std::int64_t all() const { return samples * each; }
  TWINBENCH_HOST_DEVICE std::int32_t first(std::int64_t sample) const {
    return static_cast<std::int32_t>(sample * each);
  }
  TWINBENCH_HOST_DEVICE std::int32_t sample_of(std::int32_t slot) const { return slot / each; }
  TWINBENCH_HOST_DEVICE std::int32_t number_of(std::int32_t slot) const { return slot % each; }
};

constexpr std::int32_t kNoSource = -1;  // of a flow that has no state yet: zeros

TWINBENCH_HOST_DEVICE bool is_done(std::int32_t status) {
  return status == flow_movement::kDoneZ0 || status == flow_movement::kDoneZD;
}

// Of where a flow ends, among width x height cells.
TWINBENCH_HOST_DEVICE float place_margin(float x, float y, std::int32_t width, std::int32_t height) {
  return smaller(cell_margin(x, width), cell_margin(y, height));
}

// Of the choice of a plane at a stop. A flow that has never moved is where it was placed, exactly.
TWINBENCH_HOST_DEVICE float stop_margin(const flow_movement::Rule& rule, float z, float start_depth) {
  return rule.drop || z == start_depth ? 1.0f : kernels::absolute(z);
}

// ---- tiles of the products: 64 flows by 96 columns, of a recurrent layer three gates of 32 channels ----------------

constexpr int kTileFlows = 64, kTileChannels = 32, kTileColumns = 96;
constexpr int kTileThreads = 128;
constexpr int kSliceDepth = 16;  // of the inner length at a time; rows are padded to a multiple of it

TWINBENCH_HOST_DEVICE std::int32_t padded_width(std::int32_t width) {
  return (width + kSliceDepth - 1) / kSliceDepth * kSliceDepth;
}

// Shared memory of one slice: [depth][flows], then [depth][columns]; two slices, one being filled while one is used.
// The flows of a row are turned by 8 for every four of the depth: a warp that stores 8 flows by 4 quarters of a slice
// meets all 32 banks.
constexpr int kFlowBytes = 4 * kSliceDepth * kTileFlows, kSliceBytes = kFlowBytes + 4 * kSliceDepth * kTileColumns;
constexpr int kTileBytes = 2 * kSliceBytes;
TWINBENCH_HOST_DEVICE int place_in_slice(int depth, int flow) {
  return depth * kTileFlows + (flow + depth / 4 * 8) % kTileFlows;
}

}  // namespace twinbench::energy_flow::flow_forward

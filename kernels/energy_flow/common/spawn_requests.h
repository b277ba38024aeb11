// Spawn requests of a sample's flows, in the order of their slots: which count, how many are admitted, and how a block
// finds the requests before each flow. For admission (C14) and for whoever admits children in a step of its own.
#pragma once

#include <cstdint>

#include "kernels/common/simt_scan.h"

namespace twinbench::energy_flow {

constexpr std::int32_t kMostSpawned = 1024;                 // M at most: requests of one flow in one step
constexpr std::int32_t kMostSlots = std::int32_t{1} << 20;  // of a sample, so that no sum of requests passes 2^31
constexpr std::uint8_t kSpawning = 1;  // the status of an active flow, as flow storage has it (C12)

// Only a flow that remains active after its step may spawn. Counts outside 0 .. kMostSpawned are taken as its ends. A
// product, not a choice: neighbours then load their counts together.
TWINBENCH_HOST_DEVICE std::int32_t spawn_requests(std::uint8_t status, std::int32_t count) {
  const std::int32_t some = count > 0 ? count : 0, asked = some < kMostSpawned ? some : kMostSpawned;
  return (status == kSpawning) * asked;
}

// Slots of a sample that are left to children. None where that many flows cannot be.
TWINBENCH_HOST_DEVICE std::int32_t free_slots(std::int32_t created, std::int32_t slots) {
  return created >= 0 && created <= slots ? slots - created : 0;
}
// A sample's first requests are admitted, one a free slot: how many of these, with `before` requests ahead of them.
TWINBENCH_HOST_DEVICE std::int32_t children_of(std::int32_t free, std::int32_t before, std::int32_t requests) {
  const std::int32_t left = free > before ? free - before : 0;
  return left < requests ? left : requests;
}

// Calls body(slot, requests before its own, its requests) for each slot of one sample that has any; returns the
// sample's requests. All threads of the block together. A warp's slots are neighbours; what it loads it keeps for the
// second pass, up to 3,072 slots of a sample. Two barriers, the last of them before the first body.
template <int kThreads, class Block, class Requests, class Body>
TWINBENCH_DEVICE std::int32_t scan_requests(Block& block, std::int32_t slots, Requests requests, Body body) {
  namespace simt = kernels::simt;
  constexpr int kWarps = kThreads / simt::kWarpSize, kKept = 3072 / kThreads;
  auto sums = simt::shared_array<std::int32_t, kWarps, -4>(block);
  const std::int32_t rows = (slots + kThreads - 1) / kThreads, begin = simt::warp(block) * rows * simt::kWarpSize;
  const std::int32_t end = slots - begin < rows * simt::kWarpSize ? slots : begin + rows * simt::kWarpSize;
  const auto load = [&](std::int32_t row) {
    const std::int32_t slot = begin + row * simt::kWarpSize + simt::lane(block);
    return slot < end ? requests(slot) : 0;
  };
  std::int32_t kept[kKept] = {}, sum = 0;
  TWINBENCH_UNROLL
  for (int row = 0; row < kKept; ++row)
    if (row < rows) kept[row] = load(row);
  TWINBENCH_UNROLL
  for (int row = 0; row < kKept; ++row) sum += kept[row];
  for (std::int32_t row = kKept; row < rows; ++row) sum += load(row);
  sum = simt::warp_sum(block, sum);
  block.barrier();  // whoever still reads the sums of the sample before
  if (simt::lane(block) == 0) sums[simt::warp(block)] = sum;
  block.barrier();
  std::int32_t before = 0, total = 0;
  for (int warp = 0; warp < kWarps; ++warp) {
    const std::int32_t of_warp = sums[warp];
    total += of_warp;
    if (warp < simt::warp(block)) before += of_warp;
  }
  const auto number = [&](std::int32_t row, std::int32_t count) {
    const std::int32_t up_to = simt::warp_inclusive_sum(block, count);
    if (count > 0) body(begin + row * simt::kWarpSize + simt::lane(block), before + up_to - count, count);
    before += block.shuffle_index(up_to, simt::kWarpSize - 1);
  };
  TWINBENCH_UNROLL
  for (int row = 0; row < kKept; ++row)
    if (row < rows) number(row, kept[row]);
  for (std::int32_t row = kKept; row < rows; ++row) number(row, load(row));
  return total;
}

}  // namespace twinbench::energy_flow

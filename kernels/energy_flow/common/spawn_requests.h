// Spawn requests of a sample's flows, in the order of their slots: which count, how many are admitted, and how a block
// finds the requests before each flow. For admission (C14) and for whoever admits children in a step of its own.
#pragma once

#include <cstdint>

#include "kernels/common/simt_scan.h"

namespace twinbench::energy_flow {

constexpr std::int32_t kMostSpawned = 1024;                 // M at most: requests of one flow in one step
constexpr std::int32_t kMostSlots = std::int32_t{1} << 20;  // of a sample, so that no sum of requests passes 2^31
constexpr std::uint8_t kSpawning = 1;  // the status of an active flow, as flow storage has it (C12)

// Only a flow that remains active after its step may spawn. Counts outside 0 .. kMostSpawned are taken as its ends.
TWINBENCH_HOST_DEVICE std::int32_t spawn_requests(std::uint8_t status, std::int32_t count) {
  const std::int32_t some = count > 0 ? count : 0;
  return status == kSpawning ? (some < kMostSpawned ? some : kMostSpawned) : 0;
}

// What becomes of a sample's requests: the first `admitted` of them get the numbers created, created + 1, ...
struct Admission {
  std::int32_t created = 0, admitted = 0, dropped = 0;  // created: before the step

  TWINBENCH_HOST_DEVICE std::int32_t created_after() const { return created + admitted; }
  // Of a flow with `before` requests ahead of its own.
  TWINBENCH_HOST_DEVICE std::int32_t children_of(std::int32_t before, std::int32_t requests) const {
    const std::int32_t left = admitted > before ? admitted - before : 0;
    return left < requests ? left : requests;
  }
};
// created: flows of the sample so far; slots: its quota. A number of flows that cannot be admits none.
TWINBENCH_HOST_DEVICE Admission admission_of(std::int32_t created, std::int32_t slots, std::int32_t requests) {
  const bool there = created >= 0 && created <= slots;
  const std::int32_t room = there ? slots - created : 0, admitted = requests < room ? requests : room;
  return {created, admitted, requests - admitted};
}

// A warp's slots of one sample: neighbours, a multiple of 32 of them but for the last warp's.
struct WarpSlots {
  std::int32_t begin = 0, end = 0;
  std::int32_t before = 0;  // requests of all slots before them
  std::int32_t total = 0;   // of the sample
};

// requests(slot) for every slot below `slots`, all threads of the block together. Two barriers.
template <int kThreads, class Block, class Requests>
TWINBENCH_DEVICE WarpSlots scan_requests(Block& block, std::int32_t slots, Requests requests) {
  namespace simt = kernels::simt;
  constexpr int kWarps = kThreads / simt::kWarpSize;
  auto sums = simt::shared_array<std::int32_t, kWarps, -4>(block);
  const std::int32_t each = (slots + kThreads - 1) / kThreads * simt::kWarpSize, first = simt::warp(block) * each;
  WarpSlots own;
  own.begin = first < slots ? first : slots;
  own.end = slots - own.begin < each ? slots : own.begin + each;
  std::int32_t sum = 0;
  for (std::int32_t slot = own.begin + simt::lane(block); slot < own.end; slot += simt::kWarpSize)
    sum += requests(slot);
  sum = simt::warp_sum(block, sum);
  block.barrier();  // whoever still reads the sums of the sample before
  if (simt::lane(block) == 0) sums[simt::warp(block)] = sum;
  block.barrier();
  for (int warp = 0; warp < kWarps; ++warp) {
    const std::int32_t of_warp = sums[warp];
    own.total += of_warp;
    if (warp < simt::warp(block)) own.before += of_warp;
  }
  return own;
}

// body(slot, requests before its own, its requests) for each of the warp's slots; all its lanes call, and body is not
// called for a slot without a request.
template <class Block, class Requests, class Body>
TWINBENCH_DEVICE void over_requests(Block& block, const WarpSlots& own, Requests requests, Body body) {
  namespace simt = kernels::simt;
  std::int32_t before = own.before;
  for (std::int32_t first = own.begin; first < own.end; first += simt::kWarpSize) {
    const std::int32_t slot = first + simt::lane(block);
    const std::int32_t count = slot < own.end ? requests(slot) : 0;
    const std::int32_t up_to = simt::warp_inclusive_sum(block, count);
    if (count > 0) body(slot, before + up_to - count, count);
    before += block.shuffle_index(up_to, simt::kWarpSize - 1);
  }
}

}  // namespace twinbench::energy_flow

// Arguments and launcher of flow storage's kernel (C12). No CUDA headers, so that optimized/ stays host-compiled. The
// CPU path fills the same structs.
#pragma once

#include "kernels/common/arguments.h"
#include "kernels/energy_flow/flow_storage/math.h"

namespace twinbench::energy_flow::flow_storage {

struct Extents {
  std::int64_t samples = 0, layers = 0, hidden = 0;
  std::int64_t slots = 0;  // of a sample: its quota

  TWINBENCH_HOST_DEVICE std::int64_t capacity() const { return samples * slots; }
};

// The structure of arrays: [capacity] each, a sample's flows side by side by their numbers.
struct Storage {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  float* position = nullptr;  // [3, capacity]
  float* energy = nullptr;
  kernels::Operands<float> hidden = {};  // [layers, capacity, hidden], in fp32 or as bf16 bits
  std::int32_t *sample = nullptr, *local_id = nullptr, *age = nullptr;
  std::uint8_t* status = nullptr;
  float* distance = nullptr;
  std::int32_t* cell = nullptr;        // written at completion only
  std::int32_t* forward_id = nullptr;  // generation tag: a slot with another one is free
};

// One step: what flows have after it, or at their birth.
struct Step {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Extents extents = {};
  Storage storage = {};
  std::int32_t forward = 0;  // the tag of this forward
  std::int32_t step = 0;
  const std::int32_t* birth = nullptr;  // [capacity]: the step in which a slot's flow is born
  const float* position = nullptr;      // [3, capacity]
  const float* energy = nullptr;        // [capacity], likewise the rest
  const float* hidden = nullptr;        // [layers, capacity, hidden]
  const std::uint8_t* status = nullptr;
  const float* distance = nullptr;
  const std::int32_t* cell = nullptr;
};

// Everything of a slot but its hidden state. True where a flow was born or updated.
TWINBENCH_HOST_DEVICE bool store_slot(const Step& a, std::int64_t slot) {
  const Storage& s = a.storage;
  const bool born = a.birth[slot] == a.step;
  if (!born && !is_active(s.forward_id[slot], s.status[slot], a.forward)) return false;
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    const std::int64_t at = axis * a.extents.capacity() + slot;
    s.position[at] = a.position[at];
  }
  s.energy[slot] = a.energy[slot];
  const std::uint8_t status = born ? kActive : a.status[slot];
  s.status[slot] = status;
  s.age[slot] = born ? 0 : s.age[slot] + 1;
  if (born) {
    s.sample[slot] = static_cast<std::int32_t>(slot / a.extents.slots);
    s.local_id[slot] = static_cast<std::int32_t>(slot % a.extents.slots);
    s.forward_id[slot] = a.forward;
  }
  if (born || is_completed(status)) {
    s.distance[slot] = born ? 0.0f : a.distance[slot];
    s.cell[slot] = born ? -1 : a.cell[slot];
  }
  return true;
}

constexpr int kThreads = 256;
constexpr int kSlots = 16;  // of a block: a lane each, then a warp for each row of hidden state

// One kernel. Throws CudaError if the launch is refused. No capacity: nothing is launched.
void launch_step(const Step& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::flow_storage

// Arguments and launchers of energy_flow.flow_compaction's kernels. No CUDA headers, so that optimized/ stays
// host-compiled. The CPU path fills the same struct. Flow storage is laid out as C12 has it.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/energy_flow/common/flow_list.h"

namespace twinbench::energy_flow::flow_compaction {

// How the next step finds its rows.
enum class Rows : std::int32_t {
  kAutomatic,  // moved together where the predicate says so, else by the list
  kList,       // by the list, every flow staying in its slot
  kMoved,      // moved together
  kDense       // every slot in use is computed and masked
};

// What is known of flows: slots (or children) side by side. hidden: [layers, slots, hidden].
struct StoredFlows {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const std::int32_t *sample = nullptr, *local_id = nullptr, *age = nullptr;  // [slots]
  const float *position = nullptr, *energy = nullptr, *hidden = nullptr;      // [3, slots], [slots]
};

struct Arguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int32_t samples = 0, slots = 0, places = 0, children = 0, layers = 0, hidden = 0;
  Rows rows = Rows::kAutomatic;
  bool cleanup = false;  // the step is one that evaluates the predicate
  // Before the step's end.
  const std::int32_t* list = nullptr;    // [places]: slots of the flows that it processed, by sample and local id
  const std::int32_t* extent = nullptr;  // [2]: flows in the list, slots in use
  const std::uint8_t* status = nullptr;  // [slots], after the step
  const bool* stopped = nullptr;         // [samples]
  StoredFlows flows = {};
  const std::int32_t* parent = nullptr;          // [children]: place of its parent in the list, -1 beyond the last one
  const std::int32_t* child_local_id = nullptr;  // [children]
  const float* child_position = nullptr;         // [3, children]
  const float* child_energy = nullptr;           // [children]
  const float *gate = nullptr, *candidate = nullptr;  // [layers, hidden]
  // After the next step: another storage, written where its list points to.
  std::int32_t* next_list = nullptr;  // [rows_at_most()]
  std::int32_t* order = nullptr;  // [rows_at_most()]: each row's place in the list before, children after its last one
  std::int32_t *next_sample = nullptr, *next_local_id = nullptr, *next_age = nullptr;  // [slots]
  float *next_position = nullptr, *next_energy = nullptr, *next_hidden = nullptr;
  std::int32_t* counts = nullptr;  // [4]: active, survivors, padding rows, whether the active are fewer than half
  // Between the kernels.
  std::int32_t* entry = nullptr;                       // [places]: see sample_of_entry
  std::int32_t *kept = nullptr, *kept_slot = nullptr;  // [places]: places of the survivors, and their slots
  std::int32_t* tile_counts = nullptr;                 // [tiles_of(places)]
  std::int32_t* children_before = nullptr;             // [samples]: of earlier samples; so is the next
  std::int32_t* survivors_through = nullptr;           // [samples]: of this and earlier samples
  std::int32_t* totals = nullptr;                      // [2]: survivors, children

  // A set-up refuses what lies outside; a kept one may be given it later. It then reaches no other memory.
  TWINBENCH_HOST_DEVICE std::int32_t listed() const {
    const std::int32_t count = extent[0], low = count < 0 ? 0 : count;
    const std::int32_t most = places < slots ? places : slots;
    return low > most ? most : low;
  }
  // Of the next step: listed flows and children, or as many as there are slots.
  TWINBENCH_HOST_DEVICE std::int64_t rows_at_most() const {
    const std::int64_t all = std::int64_t{places} + children;
    return all < slots ? all : slots;
  }
  TWINBENCH_HOST_DEVICE bool is_slot(std::int32_t slot) const { return slot >= 0 && slot < slots; }
  TWINBENCH_HOST_DEVICE bool is_sample(std::int32_t sample) const { return sample >= 0 && sample < samples; }
};

constexpr int kThreads = 256;
constexpr int kEach = 4;                          // places of the list a thread
constexpr std::int64_t kTile = kThreads * kEach;  // places a block
constexpr std::int64_t kMostBlocks = 1056;        // of the rows: eight on each of an H200's 132 multiprocessors
constexpr std::int64_t tiles_of(std::int64_t places) { return (places + kTile - 1) / kTile; }

// Three kernels. Throws CudaError if a launch is refused. No place: nothing is launched.
void launch(const Arguments& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::flow_compaction

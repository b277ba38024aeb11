// What the two halves of a pass of flows read and write (C16, C17), on either path.
#pragma once

#include <ATen/core/Tensor.h>

namespace twinbench::energy_flow::flow_forward {

// What a pass tells of its tape: bytes held when the forward half has ended, when the backward half has, and at most;
// and how many steps were computed forward, again ones too.
enum TapeColumn : std::int64_t { kHeld, kLeft, kPeak, kStepForwards, kTapeColumns };

// What a pass reads and writes, contiguous, a row a sample. A tensor that is not defined is not asked for.
struct FlowPlaces {
  at::Tensor initial_energy, sample_key;  // [samples, cells], int64 [samples]
  at::Tensor surface = {}, margin = {};   // [samples, cells], [samples]: of the forward half
  at::Tensor stats = {};                  // int32 [samples, kStatistics]: likewise
  at::Tensor grad_surface = {};           // [samples, cells]: without it there is no tape and no way back
  at::Tensor grad_initial_energy = {};    // [samples, cells]
  at::Tensor tape_bytes = {};             // int64 [kTapeColumns]
};

}  // namespace twinbench::energy_flow::flow_forward

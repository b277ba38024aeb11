// Who may ask for children, and how many flows a sample has: the check of what a set-up is told.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "src/common/error.h"

namespace twinbench::energy_flow {

// int32 tensors of any shape whose values must lie in 0 .. most. Throws kOutOfRange naming place, value and remedy.
inline void check_counts(const char* name, const at::Tensor& counts, std::int64_t most, const std::string& remedy) {
  const at::Tensor here = counts.cpu().contiguous();
  const std::int32_t* const values = here.const_data_ptr<std::int32_t>();
  for (std::int64_t i = 0; i < here.numel(); ++i)
    if (values[i] < 0 || values[i] > most)
      throw Error(ErrorKind::kOutOfRange, name, std::to_string(values[i]) + " at place " + std::to_string(i), remedy);
}

// status, spawn_count [samples, slots]; created [samples]. A slot is a flow's number in its sample: from `created` on
// there is no flow, so none that is active and could ask.
inline void check_spawning(const at::Tensor& status, const at::Tensor& spawn_count, const at::Tensor& created,
                           std::int64_t slots) {
  constexpr std::uint8_t kActive = 1;
  check_counts("spawn_count", spawn_count, 1024, "give 0 to 1024 children of a flow in one step");
  check_counts("created", created, slots, "a sample has 0 to " + std::to_string(slots) + " flows: its quota of slots");
  const at::Tensor states = status.cpu().contiguous(), flows = created.cpu().contiguous();
  for (std::int64_t sample = 0; sample < flows.numel(); ++sample)
    for (std::int64_t slot = flows.const_data_ptr<std::int32_t>()[sample]; slot < slots; ++slot)
      if (states.const_data_ptr<std::uint8_t>()[sample * slots + slot] == kActive)
        throw Error(ErrorKind::kOutOfRange, "status",
                    "active in slot " + std::to_string(slot) + " of sample " + std::to_string(sample),
                    "only a sample's first slots hold flows, as many as `created` says");
}

}  // namespace twinbench::energy_flow

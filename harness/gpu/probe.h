// Asks, once and before anything is measured, whether the card of this machine can be used and what it is.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/gpu/status.h"

namespace twinbench {

struct GpuProbe {
  std::vector<GpuFinding> findings;  // everything that is missing or disturbs; empty: nothing does
  nlohmann::json card;  // name, uuid_hash, sm_count, l2_bytes, memory_bytes, clocks, ...; null where none can be used

  std::string pci_bus_id;  // "0000:3B:00.0": how other libraries are told which card; empty where none was found

  bool usable() const;         // CUDA cells can run
  std::string reason() const;  // why not, with the remedy; empty where usable
};

// Asks in a child process that ends at once: a process that has started CUDA cannot fork children that use it, and this
// one must. A driver that hangs or crashes there is a finding. The calling process must have one thread.
GpuProbe probe_gpu(double patience_s = 60);

// The answer of this process's first call, kept.
const GpuProbe& gpu_status();

// The same asked in this process, which starts the driver and may not fork afterwards; tracing is not tried. For runs
// in one
// process under a tool that watches it, whose records must name the same card.
const GpuProbe& gpu_status_in_process();

}  // namespace twinbench

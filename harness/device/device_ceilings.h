// Ceilings of a device, through the same timer as the twins: one measuring rule over works that the device brings.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/device/device_timer.h"
#include "harness/roofline/ceilings.h"
#include "harness/timing/clock.h"

namespace twinbench {

// How a work's time becomes a ceiling.
enum class CeilingMeasure {
  kRate,        // amount / the least device span, held: B/s, FLOP/s, op/s
  kHostCost,    // the least host time to queue the work / amount: seconds each
  kDeviceCost,  // the least device span / amount: seconds each
};

struct CeilingWork {
  std::string name;  // copy, gemm_bf16, gemm_tf32, gemm_fp32, special_functions, graph_node, launch
  CeilingMeasure measure = CeilingMeasure::kRate;
  std::string unit;                               // B/s (read + written), FLOP/s, op/s, s
  double amount = 1;                              // bytes, operations or items of one run
  std::string method;                             // for the report
  std::function<std::function<void()>()> set_up;  // allocates; the result queues the work once
};

// The best of several runs after a warm-up, as a row of device "cuda", with the data-sheet value of `device_name`.
Ceiling measure_device_ceiling(const CeilingWork& work, DeviceTimer& timer, Clock& host,
                               const std::string& device_name);
// All of them. A work that throws is left out and named in `refused` as "name: reason".
std::vector<Ceiling> measure_device_ceilings(const std::vector<CeilingWork>& works, DeviceTimer& timer, Clock& host,
                                             const std::string& device_name, std::vector<std::string>& refused);

// Sets the data-sheet value of a ceiling, or the reason why there is none. Dense rates, from
// harness/device/data_sheets.json.
void add_data_sheet(Ceiling& ceiling, const std::string& device_name);

}  // namespace twinbench

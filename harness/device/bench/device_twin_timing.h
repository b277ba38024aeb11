// Times the variants of one component on a device: paired on one clock, in a regime, beside what explains the ratio.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "harness/bench/twin_timing.h"
#include "harness/device/bench/bench_device.h"
#include "harness/device/device_session.h"

namespace twinbench {

struct DeviceTimingOptions {
  TwinTimingOptions twin;        // its clock is the host's; the device's is in the session
  std::optional<Regime> regime;  // absent: the one that the component declares
};

// {"timings": [a row a variant], "speedups": [a row a comparison]} as the record wants them (measurement.md 2.1-2.5).
// Passes, in this order, so that no observer is near a timed sample: count what the variants ask of the device; paired
// samples, held where neither waits for the device, on the host's wall otherwise; a few samples with nothing held; the
// run as a captured graph; the traced pass. A speedup is decomposed from the unheld and the traced figures. What spoils
// a ratio: another answer than in the first run or a time below the physical floor (no ratio); a window near the
// timer's own cost, a flush that does not flush, clocks that wander, work that the published clock did not see (a ratio
// without a verdict).
nlohmann::json time_device_twin(const Twin& twin, const DeviceTimingOptions& options, const DeviceSession& session,
                                const std::vector<Ceiling>& ceilings, BenchDevice& device);

// The null comparison on the device: the optimized variant of each twin against itself, as the record's session holds
// it.
nlohmann::json device_null_test_row(const std::vector<Twin>& twins, const DeviceTimingOptions& options,
                                    const DeviceSession& session, BenchDevice& device);

}  // namespace twinbench

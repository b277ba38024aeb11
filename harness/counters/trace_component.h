// What a variant does to its device, run by run: a CUPTI pass of its own, beside the counting and never beside timing.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/gpu/device_activity.h"
#include "src/registry.h"

namespace twinbench {

// Sets the variant up, runs it `warm_up` times, then traces `runs` runs (harness/gpu/device_activity.h). Where CUPTI is
// absent, busy or refuses, the answer says so and is not complete(); it never throws for that.
DeviceActivity trace_run(const Component& component, Variant variant, const Setting& setting, std::uint64_t seed,
                         std::int64_t runs = 3, int warm_up = 2);

// {"device_activity": {...} or null, "device_activity_reason": why it is null}. Nothing: the cell was not traced.
nlohmann::json device_activity_fields(const std::optional<DeviceActivity>& activity);

// Why the cell fails for its trace: records that were lost. A trace that could not start fails nothing: no verdict
// rests on CUPTI alone (design 5). Empty where it does not fail.
std::string trace_failure(const DeviceActivity& activity);

}  // namespace twinbench

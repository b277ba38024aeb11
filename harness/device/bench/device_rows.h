// What a timing session measures on a CUDA device, as rows of the record.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "harness/device/bench/bench_device.h"

namespace twinbench {

// session.device: the timer's cost, the clock under load and the two self-tests. About a second.
nlohmann::json opened_device_session(BenchDevice& device);

// {"ceilings": rows, "refused": ["name: reason"]}.
nlohmann::json measured_device_ceilings(BenchDevice& device, bool quick);

// session.null_test over several devices: the worst verdict, all cells, the larger noise floor.
nlohmann::json joined_null_tests(const std::vector<nlohmann::json>& tests);

}  // namespace twinbench

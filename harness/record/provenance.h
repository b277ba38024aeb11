// Where a record comes from: revision, toolchain, library versions, machine, environment.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace twinbench {

// The record's "provenance" block. GPU fields are null where there is no GPU.
nlohmann::json provenance(std::uint64_t seed, const std::string& command_line);

// The record's "context" block: the keys Google Benchmark's tools expect.
nlohmann::json benchmark_context();

// The record's "components" block: the registry as this build holds it.
nlohmann::json component_table();

}  // namespace twinbench

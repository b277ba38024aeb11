// The schema of a record. Torch-free.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace twinbench {

// Reads the schema itself, once. Before anything is measured: where memory is too short for it, that ends the process
// with code 2, by name.
void read_schema();

// Empty where `record` satisfies the schema, else the first breaches with their JSON paths.
std::string schema_breaches(const nlohmann::json& record);

}  // namespace twinbench

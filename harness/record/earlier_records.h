// What earlier records of the same machine, made minutes before by the same suite, spare a run of bench. Torch-free.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace twinbench {

// What a timing session begins with: {"ceilings": rows, "session": object or null} of those records, later ones first
// where both have it. Throws Error: kInputOutput, kBadFile (not JSON, no record, a null test of another device).
nlohmann::json session_from_records(const std::vector<std::string>& files, const std::string& device);

// Names of the twins of which these records hold a decided speedup (faster, slower, same). Throws Error(kInputOutput or
// kBadFile), naming --earlier.
std::set<std::string> decided_twins(const std::vector<std::string>& files);

}  // namespace twinbench

// What a timing session begins with: roofs, clock, dispatcher, null test. Measured once, or taken from earlier records.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace twinbench {

struct SessionOptions {
  std::vector<std::string> from;     // records whose ceilings and null test stand in for measuring them again
  std::vector<std::string> earlier;  // records whose decided twins come last
  bool only = false;                 // measure the session and no twin
  int null_cells = 5;                // twins compared with themselves
  int null_blocks = 0;               // ABBA blocks a cell, however narrow the interval gets; 0: as for any comparison
};

// {"ceilings": rows, "session": object or null} of those records, later ones first where both have it. Throws Error:
// kInputOutput, kBadFile (not JSON, no record, a null test of another device).
nlohmann::json session_from_records(const std::vector<std::string>& files, const std::string& device);

}  // namespace twinbench

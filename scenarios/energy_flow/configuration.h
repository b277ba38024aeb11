// A configuration of the Energy Flow model as the documents print them: every field that says how large the flow is and
// how it runs, read from configurations/energy_flow/*.yaml (specification section 4).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scenarios/runner/keys.h"

namespace twinbench::energy_flow {

struct Configuration {
  std::string file, name, source, summary;
  nlohmann::json fields;  // all of them, defaults filled in

  std::int64_t count(const std::string& field) const { return fields.at(field).get<std::int64_t>(); }
  double real(const std::string& field) const { return fields.at(field).get<double>(); }
  std::string word(const std::string& field) const { return fields.at(field).get<std::string>(); }
  bool on(const std::string& field) const { return word(field) == "true"; }

  std::int64_t cells() const { return count("lattice_width") * count("lattice_height"); }  // S
  std::int64_t projection_age() const;  // t_proj; 0: flows are not projected for their age
  std::int64_t most_steps() const;      // K, where nothing stops earlier
};

// Name, range, default and meaning of every field.
const std::vector<Key>& configuration_fields();

// Throws Error that names file and field: kInputOutput, kBadArgument (not YAML, wrong type, a field missing or twice),
// kUnknownName (a field that does not exist, with the nearest), kOutOfRange (beyond its range; a micro-batch that does
// not divide the batch), kNonFinite. Nothing is allocated before.
Configuration read_configuration(const std::string& file);

// All below `folder`, by path. Throws kInputOutput where there is none, kBadArgument where two have one name.
std::vector<Configuration> read_configurations(const std::string& folder);

}  // namespace twinbench::energy_flow

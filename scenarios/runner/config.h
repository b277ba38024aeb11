// A scenario file: what is run, at which sizes, by which kind of experiment, held against which criteria.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scenarios/runner/criterion.h"
#include "src/component.h"

namespace twinbench {

struct Catalogue;

enum class ScenarioTier { kSmoke, kStd, kFull };                             // seconds; minutes; as long as it takes
std::string to_string(ScenarioTier tier);                                    // smoke, std, full
ScenarioTier tier_named(const std::string& word, const std::string& field);  // throws kUnknownName

// Keys that name an option which a kind runs the other way round as well, and that way.
struct SwitchingKey {
  const char* key;
  std::int64_t to;
};
inline constexpr SwitchingKey kSwitchingKeys[] = {{"switch", 1}, {"sin", 0}};

struct ScenarioConfig {
  std::string file;        // where it was read from
  std::string name;        // "flow_step"
  std::string experiment;  // the kind, "speed"
  std::string run;         // "energy_flow.flows"
  std::string source;      // the specification's scenario, "energy_flow SC21"
  std::string part;        // how much of it is shown here; empty: all
  ScenarioTier tier = ScenarioTier::kFull;
  bool card_only = false;  // too much for any other device: skipped there
  std::string summary;
  std::string baseline_shows, optimized_shows;  // both halves, in words
  std::string dataset;                          // a dataset file; "default" is the one `twinbench data make` writes
  std::uint64_t seed = 0;
  Dtype dtype = Dtype::kFp32;
  Sizes sizes;
  Options options;
  nlohmann::json keys;  // of the kind: {"windows": 20}
  std::vector<Criterion> criteria;

  std::string pipeline() const { return run.substr(0, run.find('.')); }
  std::int64_t count(const std::string& key) const { return keys.at(key).get<std::int64_t>(); }
  double real(const std::string& key) const { return keys.at(key).get<double>(); }
  std::string text(const std::string& key) const { return keys.at(key).get<std::string>(); }
  std::vector<std::int64_t> counts(const std::string& key) const { return keys.at(key); }
  std::vector<std::string> texts(const std::string& key) const { return keys.at(key); }
};

// Throws Error that names the file: kInputOutput, kBadArgument (not YAML, wrong type, key missing or twice),
// kUnknownName (kind, run, key or measure that does not exist, with the nearest), kOutOfRange (a value beyond its
// range, a criterion missing that the kind requires, a source or need that does not fit).
ScenarioConfig read_scenario(const std::string& path, const Catalogue& catalogue);

// The same with one of its sizes or options changed, of a name that the file gives under `key`. Throws kUnknownName.
ScenarioConfig with_value(const ScenarioConfig& config, const std::string& key, const std::string& name,
                          std::int64_t value);

// All scenario files below `folder`, sorted by path. Throws kInputOutput where there is none, kBadArgument where two
// scenarios have one name.
std::vector<ScenarioConfig> read_scenarios(const std::string& folder, const Catalogue& catalogue);

}  // namespace twinbench

// A scenario file: sizes, options, variants and pass criteria, read strictly (an unknown key is an error).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/component.h"

namespace twinbench {

// One pass criterion: a measure of the scenario (pipeline.h) held against a limit. Exactly one limit is set.
struct Criterion {
  std::string measure;  // "optimized.scalar_reads"
  std::optional<double> equals, at_least, at_most;
  std::string why;      // one phrase for the report

  std::string limit() const;  // "= 0", ">= 8"
  bool holds(double value) const;
};

struct ScenarioConfig {
  std::string file;      // where it was read from
  std::string name;      // "flow_step"
  std::string pipeline;  // "energy_flow"
  std::string summary;
  std::string dataset;   // a dataset file; "default" is the one `twinbench data make` writes
  std::uint64_t seed = 0;
  Dtype dtype = Dtype::kFp32;
  Sizes sizes;
  Options options;
  std::int64_t baseline_flows = 0;  // 0: all of them; else the baseline is measured on so many and extrapolated
  std::int64_t pairs = 0;           // timing budget: at most so many ABBA pairs ...
  double seconds = 0;               // ... and about so many seconds
  std::vector<Criterion> criteria;
};

// Throws Error: kInputOutput, kBadArgument (not YAML, wrong type, missing key), kUnknownName (unknown key, with the
// nearest known one), kOutOfRange (a size below 1, no criterion, not exactly one limit).
ScenarioConfig read_scenario(const std::string& path);

// Scenario files below `folder`, sorted; throws kInputOutput where there is none.
std::vector<std::string> scenario_files(const std::string& folder);

}  // namespace twinbench

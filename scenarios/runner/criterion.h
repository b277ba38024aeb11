// A pass criterion: a measure of the scenario held against a limit.
#pragma once

#include <yaml-cpp/yaml.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace twinbench {

// A number that a criterion can be held against, or why there is none here.
struct Measure {
  std::optional<double> value;
  std::string reason;  // "no GPU on this machine"; beside a value: what stands behind it
};
using Measures = std::map<std::string, Measure>;

struct Criterion {
  std::string measure;                              // "optimized.scalar_reads"
  std::optional<double> equals, at_least, at_most;  // exactly one is set
  std::string why;                                  // one phrase for the report

  std::string limit() const;  // "= 0", ">= 8"
  bool holds(double value) const;
};

// Throws Error: kBadArgument, kUnknownName (key), kNonFinite, kOutOfRange (not exactly one limit).
Criterion read_criterion(const YAML::Node& node, const std::string& where);

// The criterion's row in the record. No value: skip with the reason, never a pass. Throws kUnknownName where nothing of
// that name was measured.
nlohmann::json judge(const Criterion& criterion, const Measures& measures);

}  // namespace twinbench

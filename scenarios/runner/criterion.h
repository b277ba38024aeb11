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
  std::string reason;    // "no GPU on this machine"; beside a value: what stands behind it
  bool by_time = false;  // a few steps by the clock: a slow moment of the machine may have made it so
};
using Measures = std::map<std::string, Measure>;

// The values that a measure can have, so that a limit which says nothing is seen.
enum class Values {
  kAny,          // a slope, a power: of either sign
  kNonNegative,  // counts, bytes
  kShare,        // from 0 to 1
  kErrorRatio,   // error over what the tolerance allows: a limit above 1 is looser than the tolerance
  kTolerances,   // what something comes to in tolerances: below 1 the tolerance swallows it
};

struct Criterion {
  std::string measure;                              // "optimized.scalar_reads"
  std::optional<double> equals, at_least, at_most;  // exactly one is set
  std::string why;                                  // one phrase for the report

  std::string limit() const;  // "= 0", ">= 8"
  bool holds(double value) const;
  // Empty, or why it says nothing: every value that there can be meets the limit, or none does.
  std::string says_nothing(Values values) const;
};

// Throws Error: kBadArgument, kUnknownName (key), kNonFinite, kOutOfRange (not exactly one limit).
Criterion read_criterion(const YAML::Node& node, const std::string& where);

// The criterion's row in the record. No value: skip with the reason, never a pass. Throws kUnknownName where nothing of
// that name was measured.
nlohmann::json judge(const Criterion& criterion, const Measures& measures);

}  // namespace twinbench

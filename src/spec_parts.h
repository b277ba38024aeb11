// Small parts that component specifications are put together from: cases by role, and outputs that must be exact.
#pragma once

#include <string>
#include <utility>

#include "src/component.h"

namespace twinbench {

inline Case sized_case(std::string name, Sizes sizes, Options options = {}) {
  Case result;
  result.name = std::move(name);
  result.sizes = std::move(sizes);
  result.options = std::move(options);
  return result;
}

// The same sizes with inputs of another distribution, which names the case.
inline Case distributed(Case from, const std::string& distribution) {
  from.name = distribution;
  from.distribution = distribution;
  return from;
}

// The backward pass of a case, "backward_<name>".
inline Case backward(Case from) {
  from.name = "backward_" + from.name;
  from.pass = Pass::kBackward;
  return from;
}

inline Case timed(Case from) {
  from.timed = true;
  return from;
}

inline Case degenerate(Case from) {
  from.degenerate = true;
  return from;
}

// An output that must be equal bit for bit.
inline OutputSpec exact_output(std::string name, bool nan_allowed = false) {
  OutputSpec output;
  output.name = std::move(name);
  output.tolerance.kind = Tolerance::Kind::kExact;
  output.tolerance.spec_class = "exact";
  output.nan_allowed = nan_allowed;
  return output;
}

}  // namespace twinbench

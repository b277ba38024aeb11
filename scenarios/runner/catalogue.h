// The experiment kinds and training runs that there are: files found by CMake, one function each.
#pragma once

#include <string>
#include <vector>

#include "scenarios/runner/experiment.h"

namespace twinbench {

struct Catalogue {
  std::vector<Experiment> experiments;
  std::vector<RunSource> runs;

  // Both throw kUnknownName, listing what there is and the nearest; `field` begins the message.
  const Experiment& experiment(const std::string& name, const std::string& field) const;
  const RunSource& run(const std::string& id, const std::string& field) const;
};

// Those of this program. Built once, on first use.
const Catalogue& catalogue();

}  // namespace twinbench

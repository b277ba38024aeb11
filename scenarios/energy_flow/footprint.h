// The footprint model (src/energy_flow/common/footprint.h) of a configuration, and how a batch is split to fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/energy_flow/configuration.h"
#include "src/energy_flow/common/footprint.h"

namespace twinbench::energy_flow {

ModelSizes sizes_of(const Configuration& configuration);

// Of one batch, before anything moves.
inline Population population_of(const Configuration& configuration) { return population_of(sizes_of(configuration)); }

struct Parameters {
  std::string part;  // "mapper"
  std::int64_t count = 0;
  bool trained = false;
};
// Of the parts that there are.
std::vector<Parameters> parameters_of(const Configuration& configuration);

// Beside the workspaces of products. Tapes: of one micro-batch, no row stopping early and none spawning.
inline Footprint footprint_of(const Configuration& configuration) { return footprint_of(sizes_of(configuration)); }

// The largest micro-batch, and with it the least recomputation, with which the optimized build needs at most so many
// bytes; nothing where none does.
struct Split {
  std::int64_t micro_batch = 0, keep_state_every = 0;
  double bytes = 0;
};
std::optional<Split> split_that_fits(const Configuration& configuration, double bytes);

}  // namespace twinbench::energy_flow

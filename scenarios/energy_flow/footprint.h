// How many flows a configuration asks for and gets, and the bytes it needs: arithmetic on its fields, nothing is
// allocated (specification sections C14 and C34).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/energy_flow/configuration.h"

namespace twinbench::energy_flow {

// Of one batch, before anything moves.
struct Population {
  std::int64_t requested = 0;  // a flow for each row and cell
  std::int64_t quota = 0;      // of one row
  std::int64_t admitted = 0, dropped = 0;
};
Population population_of(const Configuration& configuration);

struct Parameters {
  std::string part;  // "mapper"
  std::int64_t count = 0;
  bool trained = false;
};
std::vector<Parameters> parameters_of(const Configuration& configuration);

// Numbers that a flow's step saves for the backward pass.
std::int64_t saved_by_baseline(const Configuration& configuration);   // every operator's output
std::int64_t saved_by_optimized(const Configuration& configuration);  // what cannot be recomputed cheaply

// Bytes, beside the workspaces of library products. Tapes: of one micro-batch, no row stopping early and none spawning.
struct Footprint {
  double weights = 0, gradients = 0, moments = 0, storage = 0, batches = 0;
  double baseline_tape = 0, optimized_tape = 0;  // the latter with states kept every so many steps, where asked for

  double without_tape() const { return weights + gradients + moments + storage + batches; }
  double baseline() const { return without_tape() + baseline_tape; }
  double optimized() const { return without_tape() + optimized_tape; }
};
Footprint footprint_of(const Configuration& configuration);

// The largest micro-batch, and with it the least recomputation, with which the optimized build needs at most so many
// bytes; nothing where none does.
struct Split {
  std::int64_t micro_batch = 0, keep_state_every = 0;
  double bytes = 0;
};
std::optional<Split> split_that_fits(const Configuration& configuration, double bytes);

}  // namespace twinbench::energy_flow

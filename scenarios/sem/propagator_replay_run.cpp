// Run sem.propagator_replay: calls of the Cayley step one after the other, solved unless the last solution holds.
#include "scenarios/runner/component_source.h"

namespace twinbench::sem::propagator_replay {

RunSource make_source() {
  // C07: each within its residual, 1e-6 and 5e-7, and 3e-7 of rounding, of the exact solution; times sqrt(1 + 0.74^2)
  // and the largest row's norm, about 26 at the documented width.
  return component_source("sem.lazy_gate", "calls of the Cayley step, solved unless the last solution holds",
                          {Tolerance::Kind::kBound, {0, 6e-5}, {0, 6e-5}, "C07"});
}

}  // namespace twinbench::sem::propagator_replay

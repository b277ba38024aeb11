// Run sem.propagator: one Cayley step of rows along the Hamiltonian, behind the rotation of their phases.
#include "scenarios/runner/component_source.h"

namespace twinbench::sem::propagator {

RunSource make_source() {
  // Twice the residual that is allowed, (5e-7 + 3e-7) sqrt(1 + 0.74^2), times the largest row's norm, about 26 at the
  // documented width; no singular value of the system is below 1.
  return component_source("sem.cayley", "one Cayley step of rows behind the rotation of their phases",
                          {Tolerance::Kind::kBound, {0, 5e-5}, {0, 5e-5}, "C06"});
}

}  // namespace twinbench::sem::propagator

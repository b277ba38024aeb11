// Run sem.propagator_gradient: the gradients of one Cayley step by its inputs and parameters.
#include "scenarios/runner/component_source.h"

namespace twinbench::sem::propagator_gradient {

RunSource make_source() {
  return component_source("sem.cayley", "the gradients of one Cayley step by its inputs and parameters",
                          {Tolerance::Kind::kGradient, {2e-5, 1e-7}, {2e-5, 1e-7}, "C06"}, Pass::kBackward);
}

}  // namespace twinbench::sem::propagator_gradient

// Run sem.propagator: one Cayley step of rows along the Hamiltonian, behind the rotation of their phases.
#include <algorithm>
#include <cmath>

#include "scenarios/runner/component_source.h"
#include "src/sem/common/rotated_system.h"

namespace twinbench::sem::propagator {
namespace {

// That of the worst row, relative to its right side.
Readings residual(const NamedTensors& inputs, const NamedTensors& results, const Setting& setting) {
  const RotatedSystem system(inputs, setting);
  const at::Tensor x = results["x"].to(at::kDouble).contiguous();
  double worst = 0;
  for (std::int64_t row = 0; row < system.rows(); ++row)
    if (const auto found = system.residual(x, row)) worst = std::isnan(*found) ? HUGE_VAL : std::max(worst, *found);
  return {{"residual", worst}};
}

}  // namespace

RunSource make_source() {
  // Twice the residual that is allowed, (5e-7 + 3e-7) sqrt(1 + 0.74^2), times the largest row's norm, about 26 at the
  // documented width; no singular value of the system is below 1.
  return component_source("sem.cayley", "one Cayley step of rows behind the rotation of their phases",
                          {Tolerance::Kind::kBound, {0, 5e-5}, {0, 5e-5}, "C06"}, Pass::kForward, residual);
}

}  // namespace twinbench::sem::propagator

// The oracle's gradients against central differences in fp64: the baseline's backward is not trusted either.
#pragma once

#include "harness/parity/parity.h"
#include "harness/parity/reference.h"

namespace twinbench {

// Every input with a gradient is moved along random directions of +1 and -1 through all its entries, and at single
// entries; of complex inputs real and imaginary parts are entries of their own. A direction whose slope is not the
// gradient's is halved until one entry remains: only an entry that disagrees by itself fails, so that a decision
// flipped by moving thousands of entries at once does not. Looks at the oracle only: one result holds for every dtype
// and variant with these inputs.
void check_gradient(const Component& component, const Setting& setting, const NamedTensors& generated,
                    const NamedTensors& oracle_gradients, const ParityOptions& options, CheckResult& result);

}  // namespace twinbench

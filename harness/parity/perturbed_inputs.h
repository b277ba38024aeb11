// Other inputs of the same case in which nothing stays as it was: weights, biases and neutral values too.
#pragma once

#include <cstdint>

#include "src/component.h"

namespace twinbench {

// The next seed's inputs; a floating one that is the same there (a bias of zeros, a gain of ones) is moved by noise.
// `own`: as generated from `seed`. Tensors whose shape the seed decides stay as they are.
NamedTensors perturbed_inputs(const ComponentSpec& spec, const Setting& setting, const NamedTensors& own,
                              std::uint64_t seed);

}  // namespace twinbench

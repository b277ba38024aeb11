// Other inputs of the same case in which nothing stays as it was: weights, biases and neutral values too, or places.
#pragma once

#include <cstdint>

#include "src/component.h"

namespace twinbench {

// The next seed's inputs; a floating one that is the same there (a bias of zeros, a gain of ones) is moved by noise.
// `own`: as generated from `seed`. Tensors whose shape the seed decides stay as they are.
NamedTensors perturbed_inputs(const ComponentSpec& spec, const Setting& setting, const NamedTensors& own,
                              std::uint64_t seed);

// The same items, each in the place of the one before it: tables that no seed changes are others then. Empty where
// nothing is batched, or where the tables that every seed makes alike do not change so either.
NamedTensors turned_inputs(const ComponentSpec& spec, const Setting& setting, const NamedTensors& own,
                           const NamedTensors& other);

}  // namespace twinbench

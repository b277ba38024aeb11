// What follows from a signature at one setting: its tensors one by one, their values, and the check of given ones.
#pragma once

#include <cstdint>
#include <vector>

#include "src/component.h"

namespace twinbench {

// The setting with every option's default filled in and every derived size computed. Throws kUnknownName for an option
// the signature does not have and kOutOfRange for one outside its range.
Setting completed(const Signature& signature, Setting setting);

// Every input tensor of a complete setting, per-layer ones expanded; in backward cases grad_<output> too.
std::vector<InputSpec> inputs_of(const Signature& signature, const Setting& setting);

// Every output tensor: the signature's, or in backward cases grad_<input> of each differentiable input and the measured
// outputs that are whole numbers: counts of what either pass did, which formulas of its operators need.
std::vector<OutputSpec> outputs_of(const Signature& signature, const Setting& setting);

// Extents at the setting's sizes. "any" is -1.
std::vector<std::int64_t> extents(const std::vector<Expression>& shape, const Setting& setting);

// What the elements of a tensor are in a numeric mode.
at::ScalarType scalar_type(Element element, Dtype dtype);

// Generates the inputs: contiguous fp32, complex64, integer or bool CPU tensors, a pure function of setting and seed.
NamedTensors generate_inputs(const ComponentSpec& spec, const Setting& setting, std::uint64_t seed);

// The complete setting that the given tensors imply: their lengths bind the sizes, which must agree among each other
// and with those the setting already has. Throws kUnknownName (missing or unknown tensor), kBadDtype, kBadShape,
// kDimensionMismatch, kOutOfRange, each naming the tensor, what it is and what it should be. A signature without inputs
// (an engine's own test component) accepts everything.
Setting bound(const Signature& signature, const NamedTensors& inputs, Setting setting);

}  // namespace twinbench

// The first rule: what a tensor is, before what it holds.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/component.h"

namespace twinbench {

// Empty, or how the candidate's shape, dtype, device or layout differs from the baseline's.
// `any_shape`: the shape may differ.
std::string structure_difference(const at::Tensor& baseline, const at::Tensor& candidate, bool any_shape = false);

// Empty, or how an output differs from what its specification declares at a complete setting: shape ("any" matches
// every length) or dtype, which in fp64 mode is the oracle's.
std::string declared_difference(const OutputSpec& spec, const at::Tensor& output, const Setting& setting);

// Extents as inputs.h has them, of which -1, "any", is every length: whether a tensor has these; "[3, any]".
bool has_extents(const at::Tensor& tensor, const std::vector<std::int64_t>& expected);
std::string extents_text(const std::vector<std::int64_t>& expected);

// "[3, 5]".
std::string shape_text(const at::Tensor& tensor);

// "element 17 (index [2, 3])" of a tensor of that shape.
std::string element_text(const at::Tensor& tensor, std::int64_t element);

}  // namespace twinbench

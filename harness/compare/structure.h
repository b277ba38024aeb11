// The first rule: what a tensor is, before what it holds.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace twinbench {

// Empty, or how the candidate's shape, dtype, device or layout differs from the baseline's.
std::string structure_difference(const at::Tensor& baseline, const at::Tensor& candidate);

// "[3, 5]".
std::string shape_text(const at::Tensor& tensor);

// "element 17 (index [2, 3])" of a tensor of that shape.
std::string element_text(const at::Tensor& tensor, std::int64_t element);

}  // namespace twinbench

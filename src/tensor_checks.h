// Checks of a component's input tensors; each refusal names the tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "src/common/error.h"
#include "src/component.h"

namespace twinbench {

// For shapes that others are derived from: indexing a tensor of another rank would fail without a name.
inline void expect_rank(const NamedTensors& inputs, const std::string& name, std::int64_t rank) {
  const at::Tensor& tensor = inputs[name];
  if (tensor.dim() != rank)
    throw Error(ErrorKind::kBadShape, name, c10::str(tensor.sizes()),
                "expected " + std::to_string(rank) + " dimensions");
}

inline void expect_tensor(const NamedTensors& inputs, const std::string& name, at::IntArrayRef shape,
                          at::ScalarType dtype) {
  const at::Tensor& tensor = inputs[name];
  if (tensor.scalar_type() != dtype)
    throw Error(ErrorKind::kBadDtype, name, c10::toString(tensor.scalar_type()),
                std::string("give ") + c10::toString(dtype));
  if (tensor.sizes() != shape)
    throw Error(ErrorKind::kBadShape, name, c10::str(tensor.sizes()), "expected " + c10::str(shape));
}

}  // namespace twinbench

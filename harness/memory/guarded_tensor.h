// A tensor between two guard bands, on any device: for inputs, and where the allocator cannot be wrapped (CUDA).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace twinbench {

class GuardedTensor {
 public:
  // Copies `source` (any shape, dtype and device) into the middle of a byte buffer of its own; contiguous.
  explicit GuardedTensor(const at::Tensor& source);
  const at::Tensor& tensor() const { return tensor_; }
  // Empty, or which band was overwritten and how far from the tensor's edge. Synchronises with the device.
  std::string broken() const;

 private:
  at::Tensor buffer_, tensor_;
};

}  // namespace twinbench

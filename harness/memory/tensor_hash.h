// A 64-bit digest of a tensor's shape, dtype and contents: shows that an input was mutated. Not cryptographic.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace twinbench {

// Equal for equal shape, dtype and bits in logical order, whatever the strides and the device.
std::uint64_t hash_of(const at::Tensor& tensor);

}  // namespace twinbench

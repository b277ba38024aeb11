// Guard bands around one tensor, by plain tensor operations so that any device works.
#include "harness/memory/guarded_tensor.h"

#include <ATen/ops/empty.h>

#include "harness/memory/guard_pattern.h"

namespace twinbench {

namespace {

constexpr std::int64_t kBandBytes = 256;  // a multiple of every element size and of the widest vector load

at::Tensor band_on(c10::Device device) {
  const at::Tensor band = at::empty({kBandBytes}, at::TensorOptions().dtype(at::kByte));
  fill_guard(band.data_ptr(), kBandBytes);
  return band.to(device);
}

}  // namespace

GuardedTensor::GuardedTensor(const at::Tensor& source) {
  const std::int64_t bytes = source.numel() * static_cast<std::int64_t>(source.element_size());
  buffer_ = at::empty({bytes + 2 * kBandBytes}, source.options().dtype(at::kByte));
  const at::Tensor band = band_on(source.device());
  buffer_.narrow(0, 0, kBandBytes).copy_(band);
  buffer_.narrow(0, kBandBytes + bytes, kBandBytes).copy_(band);
  tensor_ = buffer_.narrow(0, kBandBytes, bytes).view(source.scalar_type()).view(source.sizes());
  tensor_.copy_(source);
}

std::string GuardedTensor::broken() const {
  const at::Tensor host = buffer_.to(at::kCPU);
  const auto* start = static_cast<const char*>(host.const_data_ptr());
  const std::int64_t bytes = host.numel() - 2 * kBandBytes;
  const std::int64_t before = last_broken(start, kBandBytes);
  if (before >= 0)
    return "a byte " + std::to_string(kBandBytes - before) + " before the start of a tensor of " +
           std::to_string(bytes) + " bytes was overwritten";
  const std::int64_t after = first_broken(start + kBandBytes + bytes, kBandBytes);
  if (after >= 0)
    return "a byte " + std::to_string(after + 1) + " past the end of a tensor of " + std::to_string(bytes) +
           " bytes was overwritten";
  return "";
}

}  // namespace twinbench

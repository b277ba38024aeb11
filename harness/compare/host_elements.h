// Reads any real tensor as doubles, a chunk at a time, so that one comparison loop serves every dtype without big copies.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace twinbench {

class HostElements {
 public:
  static constexpr std::int64_t kChunk = 4096;

  // Copies to the CPU and to contiguous memory only where the tensor is not there already.
  // Throws kBadDtype for complex and quantised tensors.
  explicit HostElements(const at::Tensor& tensor);
  std::int64_t size() const { return size_; }
  // Elements [offset, offset + count) in logical order; 64-bit integers beyond 2^53 are rounded.
  void read(std::int64_t offset, std::int64_t count, double* out) const { read_(data_, offset, count, out); }
  const void* data() const { return data_; }
  std::size_t bytes() const { return host_.nbytes(); }

 private:
  using Reader = void (*)(const void*, std::int64_t, std::int64_t, double*);
  at::Tensor host_;
  const void* data_ = nullptr;
  std::int64_t size_ = 0;
  Reader read_ = nullptr;
};

// Calls visit(i, oracle, baseline, candidate) for every element, in order. All three have the oracle's size.
template <class Visit>
void for_each_element(const HostElements& oracle, const HostElements& baseline, const HostElements& candidate, Visit visit) {
  std::array<double, HostElements::kChunk> r, b, y;
  for (std::int64_t offset = 0; offset < oracle.size(); offset += HostElements::kChunk) {
    const std::int64_t count = std::min(HostElements::kChunk, oracle.size() - offset);
    oracle.read(offset, count, r.data());
    baseline.read(offset, count, b.data());
    candidate.read(offset, count, y.data());
    for (std::int64_t i = 0; i < count; ++i) visit(offset + i, r[i], b[i], y[i]);
  }
}

// What `value` becomes when it is stored in a tensor of that dtype: float overflow turns into infinity.
double stored_as(double value, c10::ScalarType dtype);

}  // namespace twinbench

// Reads any tensor as doubles or complex doubles, a chunk at a time, so that one comparison loop serves every dtype
// without big copies.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include "src/signature.h"

namespace twinbench {

using Complex = std::complex<double>;

class HostElements {
 public:
  static constexpr std::int64_t kChunk = 4096;

  // Copies to the CPU and to contiguous memory only where the tensor is not there already. Elements of a complex
  // tensor, and of a planar one (two real planes along the first axis), are complex numbers.
  // Throws kBadDtype for quantised tensors and kBadShape for a planar one without two planes.
  explicit HostElements(const at::Tensor& tensor, Element element = Element::kFloating);
  std::int64_t size() const { return size_; }
  bool is_complex() const { return layout_ != Layout::kReal; }
  // Elements [offset, offset + count) in logical order; 64-bit integers beyond 2^53 are rounded. The first is for real
  // tensors only; the second gives real ones an imaginary part of 0.
  void read(std::int64_t offset, std::int64_t count, double* out) const { read_(data_, offset, count, out); }
  void read(std::int64_t offset, std::int64_t count, Complex* out) const;
  Complex at(std::int64_t element) const {
    Complex value;
    read(element, 1, &value);
    return value;
  }
  const void* data() const { return data_; }
  std::size_t bytes() const { return host_.nbytes(); }

 private:
  enum class Layout { kReal, kInterleaved, kPlanes };
  using Reader = void (*)(const void*, std::int64_t, std::int64_t, double*);
  at::Tensor host_;
  const void* data_ = nullptr;
  std::int64_t size_ = 0;
  Layout layout_ = Layout::kReal;
  Reader read_ = nullptr;
};

// Whether the elements of such an output are complex numbers.
bool holds_complex(const at::Tensor& tensor, Element element);

// Calls visit(i, oracle, baseline, candidate) for every element, in order, with `Value`s: double, or Complex where the
// tensors are complex. All three have the oracle's size.
template <class Value, class Visit>
void for_each_element(const HostElements& oracle, const HostElements& baseline, const HostElements& candidate,
                      Visit visit) {
  std::vector<Value> values(3 * HostElements::kChunk);
  Value *const r = values.data(), *const b = r + HostElements::kChunk, *const y = b + HostElements::kChunk;
  for (std::int64_t offset = 0; offset < oracle.size(); offset += HostElements::kChunk) {
    const std::int64_t count = std::min(HostElements::kChunk, oracle.size() - offset);
    oracle.read(offset, count, r);
    baseline.read(offset, count, b);
    candidate.read(offset, count, y);
    for (std::int64_t i = 0; i < count; ++i) visit(offset + i, r[i], b[i], y[i]);
  }
}

// What `value` becomes when it is stored in a tensor of that dtype: float overflow turns into infinity.
double stored_as(double value, c10::ScalarType dtype);
inline Complex stored_as(Complex value, c10::ScalarType dtype) {
  const auto part = dtype == at::kComplexFloat ? at::kFloat : dtype == at::kComplexHalf ? at::kHalf : dtype;
  return {stored_as(value.real(), part), stored_as(value.imag(), part)};
}

inline bool is_finite(double value) { return std::isfinite(value); }
inline bool is_finite(Complex value) { return std::isfinite(value.real()) && std::isfinite(value.imag()); }

// 0 finite, 1 NaN, 2 +Inf, 3 -Inf; of complex numbers both parts in one number.
inline int kind_of(double value) { return std::isfinite(value) ? 0 : std::isnan(value) ? 1 : value > 0 ? 2 : 3; }
inline int kind_of(Complex value) { return 4 * kind_of(value.real()) + kind_of(value.imag()); }
inline bool holds_nan(double value) { return std::isnan(value); }
inline bool holds_nan(Complex value) { return std::isnan(value.real()) || std::isnan(value.imag()); }

}  // namespace twinbench

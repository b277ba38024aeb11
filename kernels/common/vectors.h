// Accesses of one or four neighbouring floats, and loops with several of them in flight. A 16-byte access needs an
// address that is a multiple of 16: the device stops there, so the host run throws, which the executor reports.
//
// A kernel writes its loop once, with the width as a template argument, and runs it at width 4 where every row starts
// aligned (`allows_four`), else at width 1: element counts that are no multiple of four lie in small test cases only.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/common/arguments.h"
#include "kernels/common/bf16_pair.h"
#include "kernels/common/simt.h"

// Keeps the next loop rolled: for code that runs once, which unrolled would only fill the instruction cache.
#if defined(__CUDACC__)
#define TWINBENCH_ROLLED _Pragma("unroll 1")
#else
#define TWINBENCH_ROLLED
#endif

namespace twinbench::kernels {

template <class T, int kWidth>
struct alignas(kWidth * sizeof(T)) Vector {
  T of[kWidth];
};
template <int kWidth>
using Floats = Vector<float, kWidth>;

template <class T, int kWidth>
TWINBENCH_DEVICE void check_alignment(const T* where) {
#if !defined(__CUDA_ARCH__)
  if (reinterpret_cast<std::uintptr_t>(where) % sizeof(Vector<T, kWidth>) != 0)
    throw std::runtime_error("an access of " + std::to_string(sizeof(Vector<T, kWidth>)) + " bytes is misaligned");
#else
  static_cast<void>(where);
#endif
}

// Of global memory. nvcc takes structs apart and may then access each element by itself (seen in machine code), so the
// accesses of 16 and 8 bytes are written out.
template <int kWidth, class T>
TWINBENCH_DEVICE Vector<T, kWidth> load(const T* from) {
  check_alignment<T, kWidth>(from);
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 4 && kWidth == 4) {
    Vector<T, kWidth> values;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(values.of[0]), "=f"(values.of[1]), "=f"(values.of[2]), "=f"(values.of[3])
                 : "l"(from));
    return values;
  } else
#endif
    return *reinterpret_cast<const Vector<T, kWidth>*>(from);
}
template <class T, int kWidth>
TWINBENCH_DEVICE void store(T* to, const Vector<T, kWidth>& values) {
  check_alignment<T, kWidth>(to);
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 4 && kWidth == 4) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(values.of[0]), "f"(values.of[1]),
                 "f"(values.of[2]), "f"(values.of[3])
                 : "memory");
    return;
  } else if constexpr (sizeof(T) == 2 && kWidth == 4) {
    const auto pair = [](unsigned low, unsigned high) { return low | high << 16; };
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(pair(values.of[0], values.of[1])),
                 "r"(pair(values.of[2], values.of[3]))
                 : "memory");
    return;
  }
#endif
  *reinterpret_cast<Vector<T, kWidth>*>(to) = values;
}
template <int kWidth>
TWINBENCH_DEVICE void store_bf16(std::uint16_t* to, const Floats<kWidth>& values) {
  Vector<std::uint16_t, kWidth> rounded;
  if constexpr (kWidth == 1) rounded.of[0] = bf16_bits(values.of[0]);
  TWINBENCH_UNROLL
  for (int i = 0; i + 1 < kWidth; i += 2) {
    const std::uint32_t pair = bf16_pair(values.of[i], values.of[i + 1]);
    rounded.of[i] = static_cast<std::uint16_t>(pair);
    rounded.of[i + 1] = static_cast<std::uint16_t>(pair >> 16);
  }
  store(to, rounded);
}
// Values as a bf16 product takes them, kept in floats: three instructions for two.
template <int kWidth>
TWINBENCH_DEVICE Floats<kWidth> rounded_to_bf16(const Floats<kWidth>& values) {
  Floats<kWidth> rounded;
  if constexpr (kWidth == 1) rounded.of[0] = low_of_pair(bf16_pair(values.of[0], 0.0f));
  TWINBENCH_UNROLL
  for (int i = 0; i + 1 < kWidth; i += 2) {
    const std::uint32_t pair = bf16_pair(values.of[i], values.of[i + 1]);
    rounded.of[i] = low_of_pair(pair);
    rounded.of[i + 1] = high_of_pair(pair);
  }
  return rounded;
}
template <int kWidth>
TWINBENCH_DEVICE void store(const Operands<float>& to, std::int64_t at, const Floats<kWidth>& values) {
  if (to.plain) store(to.plain + at, values);
  if (to.bf16) store_bf16(to.bf16 + at, values);
}

// f of every element, or of the elements of two vectors pairwise.
template <int kWidth, class F>
TWINBENCH_DEVICE Floats<kWidth> map(const Floats<kWidth>& a, F f) {
  Floats<kWidth> result;
  TWINBENCH_UNROLL
  for (int i = 0; i < kWidth; ++i) result.of[i] = f(a.of[i]);
  return result;
}
template <int kWidth, class F>
TWINBENCH_DEVICE Floats<kWidth> map(const Floats<kWidth>& a, const Floats<kWidth>& b, F f) {
  Floats<kWidth> result;
  TWINBENCH_UNROLL
  for (int i = 0; i < kWidth; ++i) result.of[i] = f(a.of[i], b.of[i]);
  return result;
}

// Whether rows of `stride` elements that start at these addresses may be taken four at a time. Null pointers are not
// accessed.
template <class... T>
TWINBENCH_DEVICE bool allows_four(std::int64_t stride, const T*... starts) {
  return stride % 4 == 0 && ((reinterpret_cast<std::uintptr_t>(starts) % (4 * sizeof(T)) == 0) && ...);
}
TWINBENCH_DEVICE bool allows_four(std::int64_t stride, const Operands<float>& operands) {
  return allows_four(stride, operands.plain, operands.bf16);
}

// store(i, load(i)) for i = first, first + step, ... below count, kBatch loads before the first of their stores: a
// store may overwrite what a later load reads, so the compiler alone would wait for each.
template <int kBatch, class Index, class Load, class Store>
TWINBENCH_DEVICE void in_batches(Index first, Index step, Index count, Load load, Store store) {
  using Value = decltype(load(first));
  Index i = first;
  for (; i + (kBatch - 1) * step < count; i += kBatch * step) {
    Value values[kBatch];
    TWINBENCH_UNROLL
    for (int b = 0; b < kBatch; ++b) values[b] = load(i + b * step);
    TWINBENCH_UNROLL
    for (int b = 0; b < kBatch; ++b) store(i + b * step, values[b]);
  }
  if (i >= count) return;
  Value values[kBatch] = {};
  TWINBENCH_UNROLL
  for (int b = 0; b < kBatch; ++b)
    if (i + b * step < count) values[b] = load(i + b * step);
  TWINBENCH_UNROLL
  for (int b = 0; b < kBatch; ++b)
    if (i + b * step < count) store(i + b * step, values[b]);
}

}  // namespace twinbench::kernels

// From tensors to kernel arguments, and the tensors that a setting's signature says a variant returns.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <string>
#include <type_traits>

#include "kernels/common/arguments.h"
#include "src/inputs.h"

namespace twinbench {

inline bool rounds_operands(const Setting& setting) { return setting.dtype == Dtype::kBf16; }

// The elements of a contiguous tensor; std::uint16_t are the bits of bf16 ones.
template <class T>
T* data(const at::Tensor& tensor) {
  if constexpr (std::is_same_v<T, std::uint16_t>)
    return reinterpret_cast<T*>(tensor.mutable_data_ptr<at::BFloat16>());
  else
    return tensor.mutable_data_ptr<T>();
}

// The elements of an input, one after the other; `inputs` keeps them alive. In order already: no copy, so that every
// run sees what the tensor holds then.
template <class T>
const T* given(NamedTensors& inputs, const std::string& name) {
  inputs.set(name, inputs[name].contiguous());
  return inputs[name].const_data_ptr<T>();
}

// A [rows, columns] tensor of any strides, so that it costs no copy.
template <class Real>
kernels::StridedRows<Real> strided_rows(const at::Tensor& tensor) {
  return {.data = tensor.const_data_ptr<Real>(), .row_stride = tensor.stride(0), .column_stride = tensor.stride(1)};
}

// Where a kernel stores what `tensor` is to hold: as it is, or as bf16 bits.
template <class Real>
kernels::Operands<Real> operands(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kBFloat16) return {.bf16 = data<std::uint16_t>(tensor)};
  return {.plain = data<Real>(tensor)};
}

// A tensor for every output of the setting (in backward cases, every gradient), contiguous, on its device.
template <class Make>
NamedTensors results_by(Make make, const Setting& setting) {
  NamedTensors results;
  for (const OutputSpec& output : outputs_of(*setting.signature, setting)) {
    const auto options = at::TensorOptions(setting.device).dtype(scalar_type(output.element, setting.dtype));
    results.set(output.name, make(extents(output.shape, setting), options));
  }
  return results;
}
inline NamedTensors zero_results(const Setting& setting) {
  return results_by([](const auto& shape, const auto& options) { return at::zeros(shape, options); }, setting);
}
// For whoever writes every element.
inline NamedTensors empty_results(const Setting& setting) {
  return results_by([](const auto& shape, const auto& options) { return at::empty(shape, options); }, setting);
}

inline Setting forward_of(Setting setting) {
  setting.input_case.pass = Pass::kForward;
  return setting;
}

}  // namespace twinbench

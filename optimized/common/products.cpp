// Which product of the library is called, and on the CPU how bf16 operands reach its fp32 one.
#include "optimized/common/products.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include <optional>
#include <string>
#include <vector>

#include "kernels/common/float_bits.h"
#include "src/common/device_event.h"
#include "src/common/device_turn.h"

namespace twinbench {
namespace {

// The values of a bf16 tensor in fp32, with its strides, in memory that is kept: no operator and no allocation that a
// card would not have.
at::Tensor widened(const at::Tensor& tensor, std::vector<float>& memory) {
  std::int64_t span = tensor.numel() > 0 ? 1 : 0;
  for (std::int64_t axis = 0; span > 0 && axis < tensor.dim(); ++axis)
    span += (tensor.size(axis) - 1) * tensor.stride(axis);
  if (memory.size() < static_cast<std::size_t>(span)) memory.resize(static_cast<std::size_t>(span));
  const auto* const bits = reinterpret_cast<const std::uint16_t*>(tensor.const_data_ptr<at::BFloat16>());
  for (std::int64_t i = 0; i < span; ++i) memory[static_cast<std::size_t>(i)] = kernels::float_of_bf16_bits(bits[i]);
  return at::from_blob(memory.data(), tensor.sizes(), tensor.strides(), at::kFloat);
}

// "mm 64x65x192 bf16": rows, inner, columns; a batch before them.
std::string shape_name(const at::Tensor& a, const at::Tensor& b, bool tf32) {
  std::string name = a.dim() == 3 ? "bmm " + std::to_string(a.size(0)) + "x" : "mm ";
  return name + std::to_string(a.size(-2)) + "x" + std::to_string(a.size(-1)) + "x" + std::to_string(b.size(-1)) +
         (a.scalar_type() == at::kBFloat16 ? " bf16"
          : tf32                           ? " tf32"
          : a.scalar_type() == at::kFloat  ? " fp32"
                                           : " fp64");
}

// TF32 is a property of the process, so it is set for each product and put back.
class AllowTf32 {
 public:
  AllowTf32() { at::globalContext().setAllowTF32CuBLAS(true); }
  ~AllowTf32() { at::globalContext().setAllowTF32CuBLAS(before_); }
  AllowTf32(const AllowTf32&) = delete;
  AllowTf32& operator=(const AllowTf32&) = delete;

 private:
  const bool before_ = at::globalContext().allowTF32CuBLAS();
};

}  // namespace

void multiply(at::Tensor out, const at::Tensor& a, const at::Tensor& b, bool tf32) {
  announce(DeviceEvent::kProduct, [&] { return shape_name(a, b, tf32); });
  std::optional<AllowTf32> mode;
  if (tf32 && !a.is_cpu()) mode.emplace();
  const bool batched = a.dim() == 3;
  if (a.scalar_type() != at::kBFloat16) {
    batched ? at::bmm_out(out, a, b) : at::mm_out(out, a, b);
  } else if (!a.is_cpu()) {
    batched ? at::bmm_out(out, a, b, at::kFloat) : at::mm_out(out, a, b, at::kFloat);
  } else {
    const DeviceTurn turn;
    static thread_local std::vector<float> left, right;
    const at::Tensor wide_a = widened(a, left), wide_b = widened(b, right);
    batched ? at::bmm_out(out, wide_a, wide_b) : at::mm_out(out, wide_a, wide_b);
  }
}

void multiply_and_add(at::Tensor out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  announce(DeviceEvent::kProduct, [&] { return shape_name(a, b, false); });
  at::addmm_out(out, bias, a, b);
}

}  // namespace twinbench

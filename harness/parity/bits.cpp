// Bitwise comparison of two sets of outputs.
#include <cstring>

#include "harness/compare/structure.h"
#include "harness/parity/subject.h"

namespace twinbench {

std::string first_bit_difference(const NamedTensors& expected, const NamedTensors& got) {
  if (expected.size() != got.size()) return "the number of outputs";
  for (const auto& [name, tensor] : expected) {
    const at::Tensor a = tensor.to(at::kCPU).contiguous(), b = got[name].to(at::kCPU).contiguous();
    if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type())
      return "shape or dtype of output '" + name + "'";
    const auto *x = static_cast<const char*>(a.const_data_ptr()), *y = static_cast<const char*>(b.const_data_ptr());
    if (a.nbytes() == 0 || std::memcmp(x, y, a.nbytes()) == 0) continue;
    std::size_t byte = 0;
    while (x[byte] == y[byte]) ++byte;
    return "output '" + name + "' at " + element_text(a, static_cast<std::int64_t>(byte / a.element_size()));
  }
  return "";
}

}  // namespace twinbench

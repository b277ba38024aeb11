// Bitwise comparison of two sets of outputs.
#include <algorithm>
#include <cstring>

#include "harness/compare/structure.h"
#include "harness/parity/subject.h"

namespace twinbench {

namespace {

at::Tensor on_host(const at::Tensor& tensor) { return tensor.to(at::kCPU).resolve_conj().resolve_neg().contiguous(); }

// `got`, but `expected` where a number is no further from it.
at::Tensor but_for(double underflow, const at::Tensor& expected, const at::Tensor& got) {
  if (underflow == 0 || !at::isFloatingType(got.scalar_type())) return got;
  return at::where((expected.to(at::kDouble) - got.to(at::kDouble)).abs() <= underflow, expected, got);
}

}  // namespace

std::string Subject::difference(const NamedTensors& got, double underflow) const {
  return first_bit_difference(without_measured(outputs_declared(), outputs), without_measured(outputs_declared(), got),
                              underflow);
}

namespace {

bool is_measured(const std::vector<OutputSpec>& specs, const std::string& name) {
  return std::any_of(specs.begin(), specs.end(), [&](const auto& spec) {
    return spec.name == name && spec.tolerance.kind == Tolerance::Kind::kMeasured;
  });
}

NamedTensors counts_of(const std::vector<OutputSpec>& specs, const NamedTensors& outputs) {
  NamedTensors counts;
  for (const auto& [name, tensor] : outputs)
    if (is_measured(specs, name) && at::isIntegralType(tensor.scalar_type(), false)) counts.set(name, tensor);
  return counts;
}

}  // namespace

std::string Subject::count_difference(const NamedTensors& got) const {
  if (setting.device.is_cuda()) return "";  // how far a card is behind its host is not decided by the inputs
  return first_bit_difference(counts_of(outputs_declared(), outputs), counts_of(outputs_declared(), got));
}

NamedTensors without_measured(const std::vector<OutputSpec>& specs, const NamedTensors& outputs) {
  NamedTensors repeatable;
  for (const auto& [name, tensor] : outputs)
    if (!is_measured(specs, name)) repeatable.set(name, tensor);
  return repeatable;
}

std::string first_bit_difference(const NamedTensors& expected, const NamedTensors& got, double underflow) {
  if (expected.size() != got.size()) return "the number of outputs";
  for (const auto& [name, tensor] : expected) {
    const at::Tensor a = on_host(tensor);
    at::Tensor b = on_host(got[name]);
    if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return "shape or dtype of output '" + name + "'";
    b = but_for(underflow, a, b);
    const auto *x = static_cast<const char*>(a.const_data_ptr()), *y = static_cast<const char*>(b.const_data_ptr());
    if (a.nbytes() == 0 || std::memcmp(x, y, a.nbytes()) == 0) continue;
    std::size_t byte = 0;
    while (x[byte] == y[byte]) ++byte;
    return "output '" + name + "' at " + element_text(a, static_cast<std::int64_t>(byte / a.element_size()));
  }
  return "";
}

}  // namespace twinbench

// Tensors over guarded memory, and its findings in words.
#include "harness/memory/paged_inputs.h"

#include <ATen/ops/from_blob.h>
#include <unistd.h>

#include <algorithm>

namespace twinbench {
namespace {

constexpr std::size_t kGuardBytes = 1 << 16;  // how far an index may miss and still be seen

}  // namespace

PagedInputs::PagedInputs(const NamedTensors& inputs, Edge edge) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const auto& [name, tensor] : inputs) {
    const std::size_t bytes = static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
    memory_.push_back(std::make_unique<kernels::simt::GuardedMemory>(
        bytes, edge == Edge::kEnd ? tensor.element_size() : page, name, kGuardBytes));
    at::Tensor copy = at::from_blob(memory_.back()->data(), tensor.sizes(), tensor.options());
    copy.copy_(tensor);
    tensors_.set(name, copy);
  }
}

std::string PagedInputs::touched() {
  std::string text;
  for (const auto& fault : watch_.take_faults()) {
    const bool ours =
        std::any_of(memory_.begin(), memory_.end(), [&](const auto& m) { return m.get() == fault.memory; });
    if (!ours || !text.empty()) continue;
    const auto bytes = static_cast<std::int64_t>(fault.memory->bytes());
    const bool before = fault.offset < 0;
    text = "input '" + fault.memory->name() + "' is " + (fault.write ? "written " : "read ") +
           std::to_string(before ? -fault.offset : fault.offset - bytes + 1) +
           (before ? " bytes before its start" : " bytes past its end");
  }
  return text;
}

}  // namespace twinbench

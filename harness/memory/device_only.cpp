// Operators as turns of the device, and an access in words.
#include "harness/memory/device_only.h"

#include <ATen/core/Tensor.h>

#include <memory>

#include "src/common/device_turn.h"

namespace twinbench {
namespace {

struct OperatorTurn : at::ObserverContext {
  DeviceTurn turn;
};

std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction&) {
  return std::make_unique<OperatorTurn>();
}

}  // namespace

DeviceOnly::DeviceOnly()
    : operators_(
          at::addThreadLocalCallback(at::RecordFunctionCallback(begin_operator).scopes({at::RecordScope::FUNCTION}))) {}

DeviceOnly::~DeviceOnly() { at::removeCallback(operators_); }

std::string DeviceOnly::touched(const NamedTensors& inputs) const {
  const auto first = watch_.first();
  if (first.memory.empty()) return "";
  std::string memory = first.memory;
  for (const auto& [name, tensor] : inputs) {
    const auto* const begin = static_cast<const char*>(tensor.const_data_ptr());
    if (first.address >= begin && first.address < begin + tensor.nbytes()) memory = "input '" + name + "'";
  }
  return std::string("the host ") + (first.write ? "writes " : "reads ") + memory + " at byte " +
         std::to_string(first.offset) + ": on a card that is a crash";
}

}  // namespace twinbench

// Lookup in named tensors.
#include "src/named_tensors.h"

#include <algorithm>

#include "src/common/error.h"

namespace twinbench {

const at::Tensor& NamedTensors::operator[](const std::string& name) const {
  for (const auto& item : items_)
    if (item.first == name) return item.second;
  std::string known;
  for (const auto& item : items_) known += (known.empty() ? "" : ", ") + item.first;
  throw Error(ErrorKind::kUnknownName, "tensor", name, "there are: " + known);
}

bool NamedTensors::contains(const std::string& name) const {
  return std::any_of(items_.begin(), items_.end(), [&](const Item& item) { return item.first == name; });
}

void NamedTensors::set(const std::string& name, at::Tensor tensor) {
  for (auto& item : items_)
    if (item.first == name) {
      item.second = std::move(tensor);
      return;
    }
  items_.emplace_back(name, std::move(tensor));
}

}  // namespace twinbench

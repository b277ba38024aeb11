// Named tensors in a fixed order: what goes into a component and what comes out of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace twinbench {

class NamedTensors {
 public:
  using Item = std::pair<std::string, at::Tensor>;

  NamedTensors() = default;
  NamedTensors(std::initializer_list<Item> items) : items_(items) {}

  // The tensor called `name`; throws kUnknownName, listing the names there are.
  const at::Tensor& operator[](const std::string& name) const;
  bool contains(const std::string& name) const;
  // Adds a tensor, or replaces the one of the same name.
  void set(const std::string& name, at::Tensor tensor);

  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }

 private:
  std::vector<Item> items_;
};

}  // namespace twinbench

// Small parts that component specifications are put together from: cases by role.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "src/component.h"

namespace twinbench {

inline Case sized_case(std::string name, Sizes sizes, Options options = {}) {
  Case result;
  result.name = std::move(name);
  result.sizes = std::move(sizes);
  result.options = std::move(options);
  return result;
}

// The same sizes with inputs of another distribution, which names the case.
inline Case distributed(Case from, const std::string& distribution) {
  from.name = distribution;
  from.distribution = distribution;
  return from;
}

// The backward pass of a case, "backward_<name>".
inline Case backward(Case from) {
  from.name = "backward_" + from.name;
  from.pass = Pass::kBackward;
  return from;
}

inline Case timed(Case from) {
  from.timed = true;
  return from;
}

inline Case degenerate(Case from) {
  from.degenerate = true;
  return from;
}

// A linear layer's parameters, <name>weight and <name>bias, drawn at `number` and the one after it.
inline void add_layer(Signature& signature, const std::string& name, const std::string& rows,
                      const std::string& columns, std::uint32_t number, bool trained = true) {
  for (const InputSpec& one : {weight(name + "weight", rows + ", " + columns, xavier(number)),
                               bias(name + "bias", rows, uniform(number + 1, -0.1, 0.1))})
    signature.inputs.push_back(trained ? one : one.without_gradient());
}

// Writes the values, in turn, at every `apart`-th place of a contiguous fp32 tensor, the first being place 0.
inline void plant(const at::Tensor& tensor, std::int64_t apart, const std::vector<float>& values) {
  float* const data = tensor.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i * apart < tensor.numel(); ++i)
    data[i * apart] = values[static_cast<std::size_t>(i) % values.size()];
}

// The expected value of a proof counter that an optimized variant never touches.
inline std::int64_t nothing(const Setting&) { return 0; }

// Sizes as real numbers, for costs: const auto [flows, hidden] = real_sizes<2>(setting, {"flows", "hidden"}).
template <std::size_t count>
std::array<double, count> real_sizes(const Setting& setting, const std::array<const char*, count>& names) {
  std::array<double, count> sizes{};
  for (std::size_t i = 0; i < count; ++i) sizes[i] = static_cast<double>(setting.size(names[i]));
  return sizes;
}

}  // namespace twinbench

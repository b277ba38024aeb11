// An arena of parameters (sem C17): which tensor lies where, which two are the parts of one complex parameter.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/common/parameter_arena.h"

namespace twinbench::sem {

// A complex parameter is two tensors of one length, its real part and right after it its imaginary part, with one
// second moment for both.
enum class ParameterKind : std::int64_t { kPlain = 0, kReal = 1, kImaginary = 2, kWithoutGradient = 3 };

struct ParameterEntry {
  ParameterKind kind = ParameterKind::kPlain;
  std::int64_t first = 0, count = 0;  // elements of the arena
  std::int64_t second = 0;            // where its second moments begin; of both parts of a pair the same place

  bool has_gradient() const { return kind != ParameterKind::kWithoutGradient; }
};

// The arena that `offsets` (int64 [tensors + 1]) and `kinds` (int64 [tensors]) describe, read at set-up, checked: the
// tensors fill `elements` without gaps, parts of a pair fit, the second moments are `seconds`.
// Throws kOutOfRange, kBadArgument and kDimensionMismatch, naming table, tensor and remedy.
inline std::vector<ParameterEntry> parameter_table(const at::Tensor& offsets, const at::Tensor& kinds,
                                                   std::int64_t elements, std::int64_t seconds) {
  const std::vector<TensorPlace> places = tensor_places(offsets, elements);
  const at::Tensor given = kinds.cpu().contiguous();
  const auto* const kind = given.const_data_ptr<std::int64_t>();
  const std::int64_t tensors = given.numel();
  const auto place = [](std::int64_t tensor) { return "tensor " + std::to_string(tensor); };
  std::vector<ParameterEntry> table;
  std::int64_t second = 0;
  for (std::int64_t tensor = 0; tensor < tensors; ++tensor) {
    const auto [first, count] = places[static_cast<std::size_t>(tensor)];
    ParameterEntry entry{static_cast<ParameterKind>(kind[tensor]), first, count, second};
    if (kind[tensor] < 0 || kind[tensor] > 3)
      throw Error(ErrorKind::kOutOfRange, "kinds", std::to_string(kind[tensor]) + " of " + place(tensor),
                  "0 plain, 1 real part, 2 imaginary part, 3 without gradient");
    const bool follows_real = tensor > 0 && table.back().kind == ParameterKind::kReal;
    if ((entry.kind == ParameterKind::kImaginary) != follows_real)
      throw Error(ErrorKind::kBadArgument, "kinds", place(tensor),
                  "a real part is followed by its imaginary part, both with a gradient, and only that follows one");
    if (follows_real) {
      if (entry.count != table.back().count)
        throw Error(ErrorKind::kDimensionMismatch, "offsets",
                    std::to_string(table.back().count) + " and " + std::to_string(entry.count) + " elements of " +
                        place(tensor - 1) + " and " + place(tensor),
                    "both parts of a complex parameter have one length");
      entry.second = table.back().second;
    } else {
      second += entry.count;
    }
    table.push_back(entry);
  }
  if (!table.empty() && table.back().kind == ParameterKind::kReal)
    throw Error(ErrorKind::kBadArgument, "kinds", place(tensors - 1), "its imaginary part is missing");
  if (second != seconds)
    throw Error(ErrorKind::kDimensionMismatch, "second_moment", std::to_string(seconds) + " elements",
                "one a plain element and one a pair: " + std::to_string(second));
  return table;
}

}  // namespace twinbench::sem

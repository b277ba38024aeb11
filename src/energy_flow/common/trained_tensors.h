// The arena of trained parameters (C25, C26): which tensor lies where, and which have no gradient.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/common/parameter_arena.h"
#include "src/named_tensors.h"

namespace twinbench::energy_flow {

struct TrainedTensor {
  TensorPlace place;
  bool has_gradient = true;
};

// The tensors that the inputs `offsets` (int64 [tensors + 1]) and `has_gradient` (int64 [tensors]) describe, read at
// set-up, checked; so are the counts. Throws kOutOfRange, naming table, tensor and remedy.
inline std::vector<TrainedTensor> trained_tensors(const NamedTensors& inputs, std::int64_t elements) {
  check_update_counts(inputs["counts"]);
  const at::Tensor given = inputs["has_gradient"].cpu().contiguous();
  const auto* const flags = given.const_data_ptr<std::int64_t>();
  std::vector<TrainedTensor> all;
  for (const TensorPlace& place : tensor_places(inputs["offsets"], elements)) {
    const std::int64_t flag = flags[all.size()];
    if (flag != 0 && flag != 1)
      throw Error(ErrorKind::kOutOfRange, "has_gradient",
                  std::to_string(flag) + " of tensor " + std::to_string(all.size()),
                  "1: the tensor has a gradient, 0: it has none and stays as it is");
    all.push_back({place, flag == 1});
  }
  return all;
}

}  // namespace twinbench::energy_flow

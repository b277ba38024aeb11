// A surface as a map from cells to energies: what variants check of its keys.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "src/common/error.h"

namespace twinbench::energy_flow {

constexpr std::int64_t kNoEntry = -1;  // the key of an entry that a shorter map does not have

[[noreturn]] inline void refuse_key(std::int64_t key, std::int64_t cells) {
  throw Error(ErrorKind::kOutOfRange, "cell", std::to_string(key),
              "a surface has cells 0 to " + std::to_string(cells - 1) + "; -1 where there is no entry");
}

// keys [batch, entries], int64: each names one of `cells`, and none twice in a sample.
inline void check_keys(const at::Tensor& keys, std::int64_t cells) {
  const at::Tensor here = keys.cpu().contiguous();
  const auto* const key = here.const_data_ptr<std::int64_t>();
  const std::int64_t batch = here.size(0), entries = here.size(1);
  std::vector<std::int64_t> seen(static_cast<std::size_t>(cells), -1);
  for (std::int64_t i = 0; i < batch * entries; ++i) {
    if (key[i] == kNoEntry) continue;
    if (key[i] < 0 || key[i] >= cells) refuse_key(key[i], cells);
    std::int64_t& last = seen[static_cast<std::size_t>(key[i])];
    if (last == i / entries)
      throw Error(ErrorKind::kBadArgument, "cell", std::to_string(key[i]), "a cell has one entry in a sample's map");
    last = i / entries;
  }
}

}  // namespace twinbench::energy_flow

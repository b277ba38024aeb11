// Which rows a batch holds: the shuffle of an epoch (energy-flow specification C03), a pure function of its arguments.
#pragma once

#include <cstdint>
#include <vector>

namespace twinbench {

// Fisher-Yates from the last element down: j = (word0 * (i + 1)) >> 32 with word 0 of Philox at counter (i, epoch, 0,
// shuffle stream) under key `seed`; element i and j change places. Throws kOutOfRange beyond 2^32 - 1 rows or epochs.
std::vector<std::uint32_t> epoch_permutation(std::int64_t rows, std::int64_t epoch, std::uint64_t seed);

// How a dataset falls into batches. `rows` counts the rows there are to deliver; the last batch may be short.
struct BatchPlan {
  std::int64_t rows = 0, batch = 1;
  std::int64_t limit = 0;  // batches of an epoch at most; 0: no limit

  std::int64_t batches() const {
    const std::int64_t all = (rows + batch - 1) / batch;
    return limit > 0 && limit < all ? limit : all;
  }
  std::int64_t rows_of(std::int64_t index) const {
    const std::int64_t rest = rows - index * batch;
    return rest < batch ? rest : batch;
  }
};

}  // namespace twinbench

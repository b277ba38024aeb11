// The shuffle.
#include "src/dataset/batch_order.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "src/common/error.h"
#include "src/common/philox.h"

namespace twinbench {

std::vector<std::uint32_t> epoch_permutation(std::int64_t rows, std::int64_t epoch, std::uint64_t seed) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::uint32_t>::max();
  if (rows < 0 || rows > kLargest) {
    throw Error(ErrorKind::kOutOfRange, "rows", std::to_string(rows), "at most 4294967295 rows are shuffled");
  }
  if (epoch < 0 || epoch > kLargest) {
    throw Error(ErrorKind::kOutOfRange, "epoch", std::to_string(epoch), "epochs are numbered 0 to 4294967295");
  }
  std::vector<std::uint32_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0u);
  // The draws of a block do not depend on one another, so they overlap in the pipeline; the swaps do.
  std::array<std::uint32_t, 256> partner;
  const auto block = static_cast<std::int64_t>(partner.size());
  for (std::int64_t end = rows; end > 1; end -= block) {
    const std::int64_t begin = std::max<std::int64_t>(end - block, 1);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint64_t word = philox(seed, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(epoch), 0,
                                        philox_tag(PhiloxStream::kShuffle, 0))
                                     .w[0];
      partner[static_cast<std::size_t>(i - begin)] =
          static_cast<std::uint32_t>((word * static_cast<std::uint64_t>(i + 1)) >> 32);
    }
    for (std::int64_t i = end; i-- > begin;) {
      std::swap(order[static_cast<std::size_t>(i)], order[partner[static_cast<std::size_t>(i - begin)]]);
    }
  }
  return order;
}

}  // namespace twinbench

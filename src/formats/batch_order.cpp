// The shuffle.
#include "src/formats/batch_order.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "src/common/cpu_clones.h"
#include "src/common/error.h"
#include "src/common/philox.h"

namespace twinbench {

namespace {

// Word 0 of the draws of elements [begin, end): independent of one another, so the loop vectorises.
TWINBENCH_CPU_CLONES void draw_words(std::uint64_t seed, std::uint32_t epoch, std::uint32_t begin, std::uint32_t end,
                                     std::uint32_t* words) {
  const std::uint32_t tag = philox_tag(PhiloxStream::kShuffle, 0);
  for (std::uint32_t i = begin; i < end; ++i) words[i - begin] = philox(seed, i, epoch, 0, tag).w[0];
}

}  // namespace

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
  // The draws of a block are made side by side; the swaps depend on one another.
  std::array<std::uint32_t, 256> words;
  const auto block = static_cast<std::int64_t>(words.size());
  for (std::int64_t end = rows; end > 1; end -= block) {
    const std::int64_t begin = std::max<std::int64_t>(end - block, 1);
    draw_words(seed, static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(begin),
               static_cast<std::uint32_t>(end), words.data());
    for (std::int64_t i = end; i-- > begin;) {
      const std::uint64_t word = words[static_cast<std::size_t>(i - begin)];
      std::swap(order[static_cast<std::size_t>(i)], order[(word * static_cast<std::uint64_t>(i + 1)) >> 32]);
    }
  }
  return order;
}

}  // namespace twinbench

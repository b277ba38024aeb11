// Kernels of the gradients of the text encoder's tables: the tokens sorted by their ids, then a block an entry. The
// work is rows + entries, beside sorting the tokens of one entry; nothing depends on the order of the threads.
#pragma once

#include "kernels/common/grid.h"
#include "kernels/common/simt_scan.h"
#include "kernels/energy_flow/common/encoder_rows.h"

namespace twinbench::energy_flow {

namespace simt = kernels::simt;

constexpr int kSortThreads = 1024;

// `order` and `end`; the tokens of an entry in any order. Grid: one block, for a few thousand tokens and the counters
// of a vocabulary are less than one launch more would cost.
struct EncoderSortTokens {
  static constexpr int kMaxThreads = kSortThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TableGradient<float>& a) const {
    const std::int64_t own = simt::thread_rank(block), all = simt::thread_count(block);
    for (std::int64_t entry = own; entry < a.entries; entry += all) a.end[entry] = 0;
    block.barrier();
    for (std::int64_t row = own; row < a.rows; row += all)
      if (is_of_text(a.tokens, row)) simt::atomic_add(block, a.end + a.entry[row], 1);
    block.barrier();
    std::int32_t before = 0;  // tokens of lower entries
    for (std::int64_t first = 0; first < a.entries; first += all) {
      const std::int64_t entry = first + own;
      const std::int32_t count = entry < a.entries ? a.end[entry] : 0;
      const simt::Prefix<std::int32_t> prefix = simt::block_exclusive_sum(block, count);
      if (entry < a.entries) a.end[entry] = before + prefix.before;
      before += prefix.total;
    }
    block.barrier();
    // Every entry's beginning moves on to its end.
    for (std::int64_t row = own; row < a.rows; row += all)
      if (is_of_text(a.tokens, row))
        a.order[simt::atomic_add(block, a.end + a.entry[row], 1)] = static_cast<std::int32_t>(row);
  }
};

// Ascending, by the whole block: a bitonic network whose comparisons all point one way, so that any count will do.
template <class Block>
TWINBENCH_DEVICE void sort_ascending(Block& block, std::int32_t* values, std::int64_t count) {
  const auto exchange = [&](std::int64_t mask) {
    for (std::int64_t i = simt::thread_rank(block); i < count; i += simt::thread_count(block)) {
      const std::int64_t other = i ^ mask;
      if (other <= i || other >= count || values[i] <= values[other]) continue;
      const std::int32_t larger = values[i];
      values[i] = values[other];
      values[other] = larger;
    }
    block.barrier();
  };
  for (std::int64_t length = 2; length < 2 * count; length *= 2) {
    exchange(length - 1);
    for (std::int64_t half = length / 4; half > 0; half /= 2) exchange(half);
  }
}

// The sums of every entry. Grid: striding blocks, an entry each.
struct EncoderTableSums {
  static constexpr int kMaxThreads = kernels::kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TableGradient<float>& a) const {
    for (std::int64_t entry = block.index().x; entry < a.entries; entry += block.grid().x) {
      const std::int64_t begin = entry > 0 ? a.end[entry - 1] : 0, end = a.end[entry];
      sort_ascending(block, a.order + begin, end - begin);
      for (std::int64_t column = simt::thread_rank(block); column < a.width; column += simt::thread_count(block)) {
        float sum = 0.0f;
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t at = a.order[i] * a.width + column;
          sum += a.first[at] + a.second[at];
        }
        a.sums[entry * a.width + column] = sum;
      }
    }
  }
};

// The same where an entry is a place: its tokens are one of every text that is long enough. Grid: blocks of
// kElementThreads columns along x, places along y, striding.
struct EncoderPlaceSums {
  static constexpr int kMaxThreads = kernels::kElementThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TableGradient<float>& a) const {
    const std::int64_t column = simt::global_index(block);
    if (column >= a.width) return;
    for (std::int64_t place = block.index().y; place < a.entries; place += block.grid().y) {
      float sum = 0.0f;
      for (std::int64_t text = 0; text < a.texts; ++text) {
        if (place >= a.tokens.length[text]) continue;
        const std::int64_t at = (a.tokens.first_row[text] + place) * a.width + column;
        sum += a.first[at] + a.second[at];
      }
      a.sums[place * a.width + column] = sum;
    }
  }
};

}  // namespace twinbench::energy_flow

// How an arena of parameters is cut into the pieces that blocks and threads take.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/adamw.h"

namespace twinbench {

// body(begin, count) of each piece of elements [first, first + count).
template <class Body>
void each_piece_of(std::int64_t first, std::int64_t count, const Body& body) {
  for (std::int64_t at = first; at < first + count;) {
    const std::int64_t end = std::min((at + kernels::kPieceElements) / 4 * 4, first + count);
    body(at, end - at);
    at = end;
  }
}

}  // namespace twinbench

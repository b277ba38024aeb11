// Which blocks of a large grid are run to stand for all of them, and how much of the grid one of them stands for.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

// Evenly spaced along each axis of the grid, two at least where they may be: so a tile of a product that all blocks of
// a row or a column of the grid read shows itself as shared.
class BlockSample {
 public:
  BlockSample() = default;
  BlockSample(Index3 grid, std::uint64_t most_blocks);

  bool is_whole() const { return taken_ == grid_; }
  bool takes(std::uint64_t block) const;  // by linear index, x fastest

  // The axes, a bit each, along which two blocks differ.
  unsigned axes_between(std::uint64_t one, std::uint64_t other) const;
  // Of memory that blocks share along these axes and no others: how much of the grid's one sampled block's stands for.
  double stands_for(unsigned shared_axes) const;

 private:
  using Extent = std::array<std::uint64_t, 3>;
  Extent coordinates(std::uint64_t block) const {
    return {block % grid_[0], block / grid_[0] % grid_[1], block / grid_[0] / grid_[1]};
  }
  Extent grid_ = {1, 1, 1}, taken_ = {1, 1, 1};
};

}  // namespace twinbench::kernels::simt

// Division of the sample among the axes of the grid.
#include "harness/simt/counting/block_sample.h"

#include <algorithm>

namespace twinbench::kernels::simt {

BlockSample::BlockSample(Index3 grid, std::uint64_t most_blocks) : grid_{grid.x, grid.y, grid.z} {
  const auto blocks = [this] { return taken_[0] * taken_[1] * taken_[2]; };
  if (grid_[0] * grid_[1] * grid_[2] <= most_blocks) {
    taken_ = grid_;
    return;
  }
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (grid_[axis] > 1 && 2 * blocks() <= most_blocks) taken_[axis] = 2;
  const auto longest = [this] {  // the axis whose sampled blocks stand farthest apart
    std::size_t found = 0;
    for (std::size_t axis = 1; axis < 3; ++axis)
      if (grid_[axis] * taken_[found] > grid_[found] * taken_[axis]) found = axis;
    return found;
  };
  while (2 * blocks() <= most_blocks) {
    const std::size_t axis = longest();
    taken_[axis] = std::min(2 * taken_[axis], grid_[axis]);
  }
  const std::size_t axis = longest();
  taken_[axis] = std::clamp<std::uint64_t>(most_blocks / (blocks() / taken_[axis]), taken_[axis], grid_[axis]);
}

bool BlockSample::takes(std::uint64_t block) const {
  const Extent at = coordinates(block);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto i = static_cast<unsigned __int128>(at[axis]);  // the k-th of the taken ones falls on it
    if (i * taken_[axis] / grid_[axis] == (i + 1) * taken_[axis] / grid_[axis]) return false;
  }
  return true;
}

unsigned BlockSample::axes_between(std::uint64_t one, std::uint64_t other) const {
  const Extent a = coordinates(one), b = coordinates(other);
  return (a[0] != b[0] ? 1u : 0u) | (a[1] != b[1] ? 2u : 0u) | (a[2] != b[2] ? 4u : 0u);
}

double BlockSample::stands_for(unsigned shared_axes) const {
  double times = 1;
  for (std::size_t axis = 0; axis < 3; ++axis)
    if ((shared_axes >> axis & 1u) == 0) times *= static_cast<double>(grid_[axis]) / static_cast<double>(taken_[axis]);
  return times;
}

}  // namespace twinbench::kernels::simt

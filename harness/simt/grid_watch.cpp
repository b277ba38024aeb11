// The watch of the thread.
#include "harness/simt/grid_watch.h"

#include <algorithm>
#include <utility>

#include "src/common/error.h"

namespace twinbench::kernels::simt {
namespace {

thread_local GridWatch* watch = nullptr;

}  // namespace

GridWatch::GridWatch(Cuts cuts) : cuts_(std::move(cuts)) {
  if (watch) throw Error(ErrorKind::kInternal, "GridWatch", "a second one", "end the first one before");
  watch = this;
}

GridWatch::~GridWatch() { watch = nullptr; }

Index3 granted_grid(const std::string& kernel, Index3 wanted) {
  if (!watch) return wanted;
  PerAxis blocks = {wanted.x, wanted.y, wanted.z};
  PerAxis& most = watch->seen_[kernel].most_blocks;
  const auto cut = watch->cuts_.find(kernel);
  for (std::size_t axis = 0; axis < blocks.size(); ++axis) {
    most[axis] = std::max(most[axis], blocks[axis]);
    if (cut != watch->cuts_.end() && cut->second[axis] > 0) blocks[axis] = std::min(blocks[axis], cut->second[axis]);
  }
  return {blocks[0], blocks[1], blocks[2]};
}

void announce_extent_asked(const std::string& kernel, int axis) {
  if (watch) watch->seen_[kernel].asks_extent[static_cast<std::size_t>(axis)] = true;
}

}  // namespace twinbench::kernels::simt

// A test's hold on the grids of launches on the host: how many blocks each kernel was given, along which axes it asks
// for that number, and fewer blocks than its launcher wants along those, so that threads must stride over the rest.
#pragma once

#include <array>
#include <map>
#include <string>

#include "kernels/common/simt.h"

namespace twinbench::kernels::simt {

// Along x, y and z.
using PerAxis = std::array<unsigned, 3>;

// Of all launches of a kernel under a watch.
struct GridUse {
  PerAxis most_blocks = {};              // that the launcher wanted
  std::array<bool, 3> asks_extent = {};  // the kernel reads grid() there: as it must where it strides
};

// While one lives, on its thread. With a cut, kernels named there get at most so many blocks along an axis; 0 leaves it
// as it is. Watches do not nest.
class GridWatch {
 public:
  using Cuts = std::map<std::string, PerAxis>;
  explicit GridWatch(Cuts cuts = {});
  ~GridWatch();
  GridWatch(const GridWatch&) = delete;
  GridWatch& operator=(const GridWatch&) = delete;

  const std::map<std::string, GridUse>& seen() const { return seen_; }

 private:
  friend Index3 granted_grid(const std::string& kernel, Index3 wanted);
  friend void announce_extent_asked(const std::string& kernel, int axis);

  Cuts cuts_;
  std::map<std::string, GridUse> seen_;
};

// For the launch and the block context: what this thread's watch grants, and what it is told.
Index3 granted_grid(const std::string& kernel, Index3 wanted);
void announce_extent_asked(const std::string& kernel, int axis);

}  // namespace twinbench::kernels::simt

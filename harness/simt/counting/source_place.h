// The line of the source that a place in the code comes from, inlined calls included.
#pragma once

#include <string>

namespace twinbench::kernels::simt {

// Files as from the repository's root. The line is the component's own; `through` names the shared helper, if any, in
// which the access itself stands.
struct SourcePlace {
  std::string file;  // empty: unknown
  int line = 0;
  std::string through_file;
  int through_line = 0;

  std::string text() const;  // "kernels/demo/row_softmax/kernel.h:31 through kernels/common/arguments.h:49"
};

SourcePlace place_of(const void* return_address);

}  // namespace twinbench::kernels::simt

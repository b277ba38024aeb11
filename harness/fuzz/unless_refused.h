// What a fuzz target asks of a reader: a typed refusal or a result, and never its own confusion.
#pragma once

#include <cstdlib>

#include "src/common/error.h"

namespace twinbench {

template <class Work>
void unless_refused(Work work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
}

}  // namespace twinbench

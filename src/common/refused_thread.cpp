// The words.
#include "src/common/refused_thread.h"

#include <cstring>

#include "src/common/error.h"

namespace twinbench {

std::string refused_thread_text(int error) {
  return Error(
             ErrorKind::kInputOutput, "threads", std::strerror(error),
             "the system refused one more: raise the limit on processes (ulimit -u; pids.max of a container), or give "
             "--threads 1")
      .what();
}

}  // namespace twinbench

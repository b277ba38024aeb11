// Recorded work that the runtime may refuse to record: once, said where choices are said, never tried again.
#pragma once

#include <string>

#include "kernels/common/captured_graph.h"
#include "kernels/common/stream.h"
#include "src/common/choice.h"

namespace twinbench {
inline namespace TWINBENCH_FORM {

// record() records graphs of `of`. False where the runtime refuses: then the same is launched kernel by kernel from now
// on. `demanded`: that is no answer, and the refusal is thrown.
template <class Record>
bool record_graphs(const std::string& of, bool demanded, const Record& record) {
  try {
    record();
    return true;
  } catch (const kernels::CaptureRefused& refused) {
    if (demanded) throw;
    announce_choice({of, {"eager", "captured"}, "eager", std::string("its capture was refused: ") + refused.what()});
    return false;
  }
}

}  // namespace TWINBENCH_FORM
}  // namespace twinbench

// Bytes of a weight that only products read, for a component's cost.
#pragma once

#include "src/setting.h"

namespace twinbench {

// In a mode that rounds to 16 bits a variant may hold its weights so from set-up on: no run need move more.
inline double operand_bytes(const Setting& setting) {
  return setting.dtype == Dtype::kBf16 || setting.dtype == Dtype::kFp16 ? 2 : setting.dtype == Dtype::kFp64 ? 8 : 4;
}

}  // namespace twinbench

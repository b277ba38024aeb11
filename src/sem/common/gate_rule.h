// Which gates are refused (sem 4.2): one that lies no higher than what the solver leaves cannot pass its own answer.
#pragma once

#include <string>

#include "src/common/error.h"
#include "src/setting.h"

namespace twinbench::sem {

// Throws kBadArgument naming value and remedy. Options lazy_cg, lazy_cg_tol and tolerance.
inline void check_gate(const Setting& setting) {
  const double rounding = setting.dtype == Dtype::kFp64 ? 0 : 3e-7;
  const double gate = setting.option("lazy_cg_tol"), least = setting.option("tolerance") + rounding;
  if (setting.on("lazy_cg") && !(gate > least))
    throw Error(ErrorKind::kBadArgument, "lazy_cg_tol", std::to_string(gate),
                "above the solver's tolerance and fp32's rounding, " + std::to_string(least) + "; or lazy_cg off");
}

}  // namespace twinbench::sem

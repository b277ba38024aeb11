// `twinbench data make / info / convert`.
#pragma once

#include "harness/command/options.h"

namespace twinbench {

int data_command(const DataOptions& options);

}  // namespace twinbench

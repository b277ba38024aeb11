// `twinbench kernels`: what kernels touch, counted on the host and pinned; what compilers say; modelled times.
#pragma once

#include "harness/command/command.h"

namespace twinbench {

// `common`: of the program, for the record's provenance.
int kernels_command(const KernelsOptions& options, CommandOptions common);

}  // namespace twinbench

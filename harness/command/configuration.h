// `twinbench configuration`: declared here so that main needs no header of scenarios/, where it is defined.
#pragma once

#include "harness/command/options.h"

namespace twinbench {

// What a configuration asks for and gets: flows, parameters, bytes; where the bytes are too many, how it would fit.
// Warns on stderr of flows that a quota drops. Throws as read_configuration does.
int configuration_command(const ConfigurationOptions& options);

}  // namespace twinbench

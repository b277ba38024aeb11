// All that the twinbench program does.
#pragma once

namespace twinbench {

// Returns the exit code.
int program(int count, char** words);

}  // namespace twinbench

// The folder that CMake was told.
#include "harness/record/source_folder.h"

namespace twinbench {

const char* const kSourceFolder = TWINBENCH_SOURCE_FOLDER;

}  // namespace twinbench

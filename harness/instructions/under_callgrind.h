// This program once more, under Callgrind, which counts instructions instead of measuring time.
#pragma once

#include <string>

namespace twinbench {

// Starts this program anew with the same arguments under Valgrind's Callgrind, instrumentation off until it is asked
// for, and returns its exit code. Throws Error(kMissingDevice) where there is no valgrind.
int run_under_callgrind(char** arguments);

// Where Callgrind writes its dumps: set for the program under Callgrind; empty elsewhere.
std::string callgrind_folder();

// What decides instruction counts beside the sources, as one line: the vectors of the processor that Valgrind shows
// (LibTorch's libraries branch on them; the machine's vendor they do not see: counts of an Intel and an AMD machine are
// alike), LibTorch, compiler, C library, Valgrind. Pins hold on machines with the same line. Of the process under
// Callgrind.
std::string counting_machine();

}  // namespace twinbench

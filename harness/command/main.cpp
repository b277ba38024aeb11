// The twinbench program.
#include "harness/command/outputs.h"
#include "harness/command/program.h"

[[gnu::section(".preinit_array"),
  gnu::used]] static void (*const before_libraries)() = twinbench::name_what_the_start_dies_of;

int main(int count, char** words) { return twinbench::program(count, words); }

// The twinbench program.
#include "harness/command/outputs.h"
#include "harness/command/program.h"
#include "harness/runner/waiting_threads.h"

namespace {

void before_libraries(int, char** words, char** environment) {
  twinbench::name_what_the_start_dies_of();
  twinbench::start_with_policy(words, environment);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const first)(int, char**, char**) = before_libraries;

}  // namespace

int main(int count, char** words) { return twinbench::program(count, words); }

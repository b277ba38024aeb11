// The twinbench program.
#include "harness/command/program.h"

int main(int count, char** words) { return twinbench::program(count, words); }

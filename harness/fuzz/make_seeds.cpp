// Writes the fuzzers' seed corpora, one folder a target. Usage: make_seeds FOLDER [TORCH FILES]
#include <iostream>

#include "harness/fuzz/seeds.h"

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: make_seeds FOLDER [TORCH FILES]\n";
    return 2;
  }
  twinbench::make_seeds(arguments[1], {arguments + 2, arguments + count});
  return 0;
}

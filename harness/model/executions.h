// How often each piece of a kernel's machine code was executed, from what was counted at the places that it touches.
#pragma once

#include <vector>

namespace twinbench::model {

// Code that control flow cannot tell apart (ci/kernel_pieces.py): all of it is executed equally often.
struct CodePiece {
  struct Use {
    int place = 0;     // of the kernel
    double words = 0;  // of 4 bytes, that one execution moves there
  };
  double instructions = 0, fma = 0, special = 0;
  int within = -1;           // an earlier piece, as often as which this one is executed if nothing is known of it
  std::vector<Use> at;       // what it always touches
  std::vector<Use> guarded;  // what it touches where a condition holds
};

// What was counted: of groups of places together.
struct CountedWords {
  std::vector<int> group_of;  // by place; -1: nothing is known there
  std::vector<double> words;  // by group
};

// By piece. Finds what explains the counted words best: each piece is scaled by the mean, over the words that it moves,
// of counted over expected, until that settles (Richardson 1972, Lucy 1974). Copies of unrolled code, which share their
// places, so share what was counted evenly. Guarded accesses say something of pieces alone that have no others.
std::vector<double> executions_of(const std::vector<CodePiece>& pieces, const CountedWords& counted);

}  // namespace twinbench::model

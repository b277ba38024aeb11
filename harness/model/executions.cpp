// Richardson's and Lucy's iteration over pieces and groups of places.
#include "harness/model/executions.h"

#include <algorithm>
#include <cstddef>

namespace twinbench::model {
namespace {

constexpr int kRounds = 200;  // where pieces share places; others have settled after one

struct Known {
  std::size_t group;
  double words;
};

std::vector<Known> known_of(const std::vector<CodePiece::Use>& uses, const CountedWords& counted) {
  std::vector<Known> known;
  for (const CodePiece::Use& use : uses)
    if (const int group = counted.group_of.at(static_cast<std::size_t>(use.place)); group >= 0)
      known.push_back({static_cast<std::size_t>(group), use.words});
  return known;
}

}  // namespace

std::vector<double> executions_of(const std::vector<CodePiece>& pieces, const CountedWords& counted) {
  std::vector<std::vector<Known>> all, saying;
  for (const CodePiece& piece : pieces) {
    std::vector<Known> always = known_of(piece.at, counted), maybe = known_of(piece.guarded, counted);
    saying.push_back(always.empty() ? maybe : always);
    always.insert(always.end(), maybe.begin(), maybe.end());
    all.push_back(std::move(always));
  }
  std::vector<double> executions(pieces.size(), 1.0), expected(counted.words.size());
  for (int round = 0; round < kRounds; ++round) {
    std::fill(expected.begin(), expected.end(), 0.0);
    for (std::size_t piece = 0; piece < pieces.size(); ++piece)
      for (const Known& use : all[piece]) expected[use.group] += executions[piece] * use.words;
    for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
      double ratios = 0, words = 0;
      for (const Known& use : saying[piece]) {
        if (expected[use.group] > 0) ratios += use.words * counted.words[use.group] / expected[use.group];
        words += use.words;
      }
      if (words > 0)
        executions[piece] *= ratios / words;
      else if (const int within = pieces[piece].within; within >= 0)
        executions[piece] = executions[static_cast<std::size_t>(within)];
    }
  }
  return executions;
}

}  // namespace twinbench::model

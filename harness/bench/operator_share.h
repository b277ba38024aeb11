// Where the time of a variant that is written in operators goes at the size that is timed: into them, which are counted
// at every size, or beside them, where nothing is counted but in small cells (`twinbench instructions`).
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "src/registry.h"

namespace twinbench {

// Processor time of the calling thread: of a run whose operators are watched, of these alone, of an unwatched run.
struct OperatorShare {
  double watched_s = 0, inside_s = 0, unwatched_s = 0;
  std::int64_t operators = 0;  // outermost ones
  double elements = 1;         // the product of the case's sizes

  // Not below 0, as clocks read so near to each other may say.
  double beside_s() const { return std::max(watched_s - inside_s, 0.0); }
  double share() const { return watched_s > 0 ? beside_s() / watched_s : 0; }
  double beside_one_s() const { return beside_s() / static_cast<double>(operators > 0 ? operators : 1); }
};
OperatorShare operator_share(Runnable& runnable);

// The product of the case's sizes, those of 0 left out.
double elements_of(const Case& input_case);

// Empty, or why the run at the timed size is padded: it takes longer where nobody watches, most of it is beside
// operators and this is not declared, or an operator takes much more beside itself there than in the small case. So no
// size whose instructions nobody counts can be slow alone. `host`: of a component that works on the host, or beside
// operators, whose own loops may grow with its elements.
std::string padding_of(const OperatorShare& timed, const OperatorShare& small, bool host);

// Of the cases of that pass whose instructions are counted the largest, of the same options where there is one: with
// another one, padding at sizes that nobody counts would be compared with itself. nullptr where there is none.
const Case* small_case_for(const Cell& timed);

// Those of the timed runnable and of that small case, which is set up and run here; zeros without such a case.
struct BesideOperators {
  OperatorShare timed, small;
  bool host = false;
  std::string padding() const { return padding_of(timed, small, host); }
};
BesideOperators beside_operators(const Cell& timed, Runnable& runnable, std::uint64_t seed);

// {"share", "operators", "of_one_us", "of_one_small_us"}
nlohmann::json to_json(const BesideOperators& beside);

}  // namespace twinbench

// Where the time of a variant that is written in operators goes at the size that is timed: into them, which are counted
// at every size, or beside them, where nothing is counted but in small cells (`twinbench instructions`).
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/registry.h"

namespace twinbench {

// Processor time of the calling thread: of a run whose operators are watched, of these alone, of an unwatched run.
struct OperatorShare {
  double watched_s = 0, inside_s = 0, unwatched_s = 0;
  std::int64_t operators = 0;  // those that the counters count
  double work = 1;             // what loops beside operators may grow with: declared bytes and FLOPs, or host_bytes

  // Not below 0, as clocks read so near to each other may say.
  double beside_s() const { return std::max(watched_s - inside_s, 0.0); }
  double share() const { return watched_s > 0 ? beside_s() / watched_s : 0; }
  double beside_one_s() const { return beside_s() / static_cast<double>(operators > 0 ? operators : 1); }
};
OperatorShare operator_share(Runnable& runnable);

// Empty, or why the run at the timed size is padded: it takes longer where nobody watches, or a fifth of its time is
// spent beside operators that a run of the small case would not spend so on as many. So no size whose instructions
// nobody counts can be slow alone; views are pinned (CounterSnapshot::layout). `host`: of a component that works on the
// host, or beside operators, whose own loops may grow with its declared work. Without a small case: where most of it
// is beside operators and this is not declared.
std::string padding_of(const OperatorShare& timed, const OperatorShare& small, bool host);

// What the timed case is compared with: of the small cases of its pass whose instructions are counted, and whose
// options send them most nearly the same way, the one with most work. With another one, padding at sizes that nobody
// counts would be compared with itself. For loops that grow with the work, also the one with most work of all: what a
// byte takes is told more sharply there. Empty where there is none.
std::vector<const Case*> small_cases_for(const Cell& timed, bool host);

// Those of the timed runnable and of these small cases, which are set up and run here.
struct BesideOperators {
  OperatorShare timed;
  std::vector<OperatorShare> small;  // the counted one first
  bool host = false;
  std::string padding() const;
};
BesideOperators beside_operators(const Cell& timed, Runnable& runnable, std::uint64_t seed);

// {"share", "operators", "of_one_us", "of_one_small_us"}
nlohmann::json to_json(const BesideOperators& beside);

}  // namespace twinbench

// Where the time of a variant that is written in operators goes at the size that is timed: into them, which are counted
// at every size, or beside them, where nothing is counted but in small cells (`twinbench instructions`).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "src/registry.h"

namespace twinbench {

// Processor time of the calling thread in one run: of all of it without anybody watching, of operators in another run.
struct OperatorShare {
  double total_s = 0, inside_s = 0;
  std::int64_t operators = 0;  // outermost ones

  double outside_s() const { return total_s > inside_s ? total_s - inside_s : 0; }
  double share() const { return total_s > 0 ? outside_s() / total_s : 0; }
  double outside_of_one_s() const { return operators > 0 ? outside_s() / static_cast<double>(operators) : outside_s(); }
};
OperatorShare operator_share(Runnable& runnable);

// Empty, or why the run at the timed size is padded: an operator takes much more beside itself there than in the largest
// small case of the same kind. So no size that is never counted instruction by instruction can be slow alone.
std::string padding_of(const OperatorShare& timed, const OperatorShare& small);

// Those of the timed runnable and of that small case, which is set up and run here; zeros without such a case.
struct BesideOperators {
  OperatorShare timed, small;
  std::string padding() const { return padding_of(timed, small); }
};
BesideOperators beside_operators(const Cell& timed, Runnable& runnable, std::uint64_t seed);

// {"share", "operators", "of_one_us", "of_one_small_us"}
nlohmann::json to_json(const BesideOperators& beside);

}  // namespace twinbench

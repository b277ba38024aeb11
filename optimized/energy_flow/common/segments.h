// Where flows' states are kept so that the steps between are computed again on the way back (C31): every so many steps,
// as many as a budget of bytes has room for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "src/common/error.h"
#include "src/setting.h"

namespace twinbench::energy_flow::flow_forward {

// Steps that there can be: without children no flow lives beyond its projection.
inline std::int64_t most_steps(const Setting& s) {
  const std::int64_t age = s.option("spawn") == 0 ? static_cast<std::int64_t>(s.option("projection_age")) : 0;
  return age > 0 ? std::min(age, s.size("max_steps")) : s.size("max_steps");
}

// Steps between two kept states; 0: neither an interval nor a budget is given. held(every): the most bytes that a tape
// with such segments holds. The longest segment that fits: all but the last one are computed again. Throws kOutOfMemory
// where none does.
template <class Held>
std::int64_t steps_between_states(const Setting& s, const Held& held) {
  const auto given = static_cast<std::int64_t>(s.option("ckpt_every"));
  const auto budget = static_cast<std::int64_t>(s.option("tape_budget"));
  const std::int64_t steps = std::max<std::int64_t>(1, most_steps(s));
  const std::int64_t longest = given > 0 ? std::min(given, steps) : steps, shortest = given > 0 ? longest : 1;
  if (budget == 0) return given > 0 ? longest : 0;
  std::int64_t thriftiest = longest;
  for (std::int64_t every = longest; every >= shortest; --every) {
    if (held(every) <= budget) return every;
    if (held(every) < held(thriftiest)) thriftiest = every;
  }
  throw Error(ErrorKind::kOutOfMemory, "tape_budget", std::to_string(budget),
              "give at least " + std::to_string(held(thriftiest)) + " bytes, which states kept every " +
                  std::to_string(thriftiest) + " of " + std::to_string(steps) + " steps need, or fewer samples");
}

}  // namespace twinbench::energy_flow::flow_forward

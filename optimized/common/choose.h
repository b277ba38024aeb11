// Picks the fastest of several ways to do the same, once for a shape, at set-up: on a card by measuring them, on simt,
// where no time means anything, by the times expected of a card.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "optimized/common/runtime.h"
#include "src/common/choice.h"
#include "src/common/error.h"

namespace twinbench {

struct Way {
  std::string name;
  double expected;            // s, of one run on a card
  std::function<void()> run;  // for the measurement; may be called any number of times
};

// Each form keeps its own measurements.
inline namespace TWINBENCH_FORM {

// Index of the way to take. `of` names what is done and its shape: measured once for it in a process, so that every
// set-up of one shape takes the same way. The device and the stream must be the current ones. The first way is kept
// unless another is at least `least_gain` times as quick. measure(run): seconds of a run, or kNotMeasured.
using Measure = std::function<double(const std::function<void()>& run)>;
inline std::size_t choose(const std::string& of, const std::vector<Way>& ways, double least_gain = 1,
                          const Measure& measure = seconds_of) {
  if (ways.size() == 1) return 0;
  const auto names = [&ways] {
    std::vector<std::string> all;
    for (const Way& way : ways) all.push_back(way.name);
    return all;
  };
  const auto named = [&ways](const std::string& name) {
    return std::find_if(ways.begin(), ways.end(), [&](const Way& way) { return way.name == name; });
  };
  if (const auto demanded = demanded_way(); demanded && named(*demanded) != ways.end()) {
    announce_choice({of, names(), *demanded, "demanded"});
    return static_cast<std::size_t>(named(*demanded) - ways.begin());
  }
  static std::mutex mutex;
  static std::map<std::string, std::vector<double>> measured;
  const std::lock_guard<std::mutex> lock(mutex);
  const std::string key = of + " on " + current_device();
  if (measured.count(key) == 0)
    for (const Way& way : ways) measured[key].push_back(measure(way.run));
  const std::vector<double>& times = measured[key];
  const bool known = times.front() != kNotMeasured;
  const auto seconds = [&](std::size_t i) { return known ? times[i] : ways[i].expected; };
  std::size_t best = 0;
  for (std::size_t i = 1; i < ways.size(); ++i)
    if (seconds(i) * (best == 0 ? least_gain : 1) < seconds(best)) best = i;
  std::string why = known ? "measured" : "expected";
  for (std::size_t i = 0; i < ways.size(); ++i) {
    char text[32];
    std::snprintf(text, sizeof text, " %.1f us", seconds(i) * 1e6);
    why += (i > 0 ? ", " : ": ") + ways[i].name + text;
  }
  announce_choice({of, names(), ways[best].name, why});
  return best;
}

}  // namespace TWINBENCH_FORM

}  // namespace twinbench

// How long the judging of answers took, by what was done: seconds on the wall and of the processor, all threads.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/timing/clock.h"
#include "harness/timing/processor_time.h"

namespace twinbench {

class JudgingTime {
 public:
  // `what`: oracle, before, during, after, beside (the rules that look at the process).
  template <typename Work>
  void spend(const std::string& what, const Work& work) {
    SteadyClock clock;
    const auto start = clock.now();
    const double processor = processor_seconds();
    work();
    seconds_ += seconds_between(start, clock.now());
    processor_s_[what] += processor_seconds() - processor;
  }
  double seconds() const { return seconds_; }

  // {"judging_s": wall, "judging_cpu_s": {"oracle": s, ...}, "cpu_s": of the whole process so far}.
  void add_to(nlohmann::json& result) const {
    result["judging_s"] = seconds_;
    result["judging_cpu_s"] = processor_s_;
    result["cpu_s"] = processor_seconds();
  }

 private:
  double seconds_ = 0;
  std::map<std::string, double> processor_s_;
};

}  // namespace twinbench

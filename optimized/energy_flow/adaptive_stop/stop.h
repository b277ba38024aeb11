// The stop's tensors, the same on both paths; a path says how the steps are gone through.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "kernels/energy_flow/adaptive_stop/arguments.h"
#include "optimized/common/tensors.h"

namespace twinbench::energy_flow::adaptive_stop {

class Stop : public Runnable {
 public:
  Stop(const NamedTensors& inputs, const Setting& setting) : inputs_(inputs), results_(empty_results(setting)) {
    a_ = {.rule = {.threshold = setting.option("threshold"),
                   .max_steps = static_cast<std::int32_t>(setting.size("decisions") - 1),
                   .min_steps = static_cast<std::int32_t>(setting.option("min_steps")),
                   .patience = static_cast<std::int32_t>(setting.option("patience")),
                   .convergence = setting.on("convergence")},
          .samples = setting.size("samples"),
          .completed = given<std::int32_t>(inputs_, "completed"),
          .created = given<std::int32_t>(inputs_, "created"),
          .active = given<std::int32_t>(inputs_, "active"),
          .states = {.best = data<std::int32_t>(results_["best"]),
                     .stall = data<std::int32_t>(results_["stall"]),
                     .steps = data<std::int32_t>(results_["steps"]),
                     .reason = data<std::int32_t>(results_["reason"])},
          .flow_steps = data<std::int64_t>(results_["flow_steps"])};
  }

  NamedTensors outputs() override {
    results_["steps_issued"].fill_(issued_);
    results_["host_polls"].fill_(polls_);
    return results_;
  }

 protected:
  Arguments a_;
  std::int32_t issued_ = 0, polls_ = 0;

 private:
  NamedTensors inputs_;  // kept alive: the arguments point into them
  NamedTensors results_;
};

}  // namespace twinbench::energy_flow::adaptive_stop

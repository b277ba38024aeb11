// A run of several updates of a state that stays where it is: what the rotor's and the metric's share on both paths.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "optimized/common/tensors.h"
#include "optimized/trainer2/common/plane_table.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2 {

// The state is advanced in the results of its name; the plane table is made at set-up.
template <class Arguments>
class SteppedUpdate : public Runnable {
 public:
  SteppedUpdate(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs), results_(empty_results(setting)), steps_(setting.size("steps")) {
    axes_ = axes_of_planes(inputs["plane_axes"], setting.size("planes"));
    for (const InputSpec& input : setting.signature->inputs)
      if (input.role == Role::kState) state_.push_back(input.name);
    SteppedUpdate::reset();
  }

  void run() override {
    for (std::int64_t step = 0; step < steps_; ++step) update(of_step(step));
  }
  void reset() override {
    for (const std::string& name : state_) results_[name].copy_(inputs_[name]);
  }
  NamedTensors outputs() override { return results_; }

 protected:
  virtual void update(const Arguments& arguments) = 0;
  virtual Arguments of_step(std::int64_t step) const = 0;

  const std::int32_t* first_axes() const { return axes_.const_data_ptr<std::int32_t>(); }
  const std::int32_t* second_axes() const { return first_axes() + axes_.size(1); }

  NamedTensors inputs_, results_;

 private:
  std::int64_t steps_;
  at::Tensor axes_;
  std::vector<std::string> state_;
};

}  // namespace twinbench::trainer2

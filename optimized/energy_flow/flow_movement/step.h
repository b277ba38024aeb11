// The flow step's tensors, the same on both paths; a path says how a pass is done.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "kernels/energy_flow/flow_movement/arguments.h"
#include "optimized/common/tensors.h"
#include "optimized/energy_flow/common/rules_of.h"

namespace twinbench::energy_flow::flow_movement {

// The backward pass needs nothing of the forward one but its inputs: it is one pass, not two.
template <class Real>
class Step : public Runnable {
 public:
  Step(const NamedTensors& inputs, const Setting& setting)
      : backward_(setting.backward()), inputs_(inputs), results_(zero_results(setting)) {
    const std::int64_t flows = setting.size("flows"), samples = setting.size("samples");
    const FlowsRead<Real> read = {.raw = given<Real>(inputs_, "raw"),
                                  .position = given<Real>(inputs_, "position"),
                                  .age = given<std::int32_t>(inputs_, "age"),
                                  .sample = given<std::int32_t>(inputs_, "sample"),
                                  .stopped = given<bool>(inputs_, "stopped")};
    if (backward_)
      back_ = {.rule = movement_rule(setting),
               .flows = flows,
               .samples = samples,
               .read = read,
               .grad_new_position = given<Real>(inputs_, "grad_new_position"),
               .grad_new_energy = given<Real>(inputs_, "grad_new_energy"),
               .grad_raw = result<Real>("grad_raw"),
               .grad_position = result<Real>("grad_position"),
               .grad_energy = result<Real>("grad_energy"),
               .grad_next_energy = result<Real>("grad_next_energy")};
    else
      forward_ = {.rule = movement_rule(setting),
                  .flows = flows,
                  .samples = samples,
                  .read = read,
                  .energy = given<Real>(inputs_, "energy"),
                  .next_energy = given<Real>(inputs_, "next_energy"),
                  .new_position = result<Real>("new_position"),
                  .new_energy = result<Real>("new_energy"),
                  .new_age = result<std::int32_t>("new_age"),
                  .status = result<std::uint8_t>("status"),
                  .distance = result<Real>("distance"),
                  .counts = result<std::int32_t>("counts")};
  }

  void run() override { backward_ ? move_back(back_) : move(forward_); }
  NamedTensors outputs() override { return results_; }

 protected:
  virtual void move(const ForwardArguments<Real>& a) = 0;
  virtual void move_back(const BackwardArguments<Real>& a) = 0;

  // int32, zeros.
  at::Tensor counters(std::int64_t count) const { return at::zeros({count}, inputs_["age"].options().dtype(at::kInt)); }
  ForwardArguments<Real> forward_;

 private:
  template <class T>
  T* result(const std::string& name) const {
    return data<T>(results_[name]);
  }

  const bool backward_;
  NamedTensors inputs_;  // kept alive: the arguments point into them
  NamedTensors results_;
  BackwardArguments<Real> back_;
};

}  // namespace twinbench::energy_flow::flow_movement

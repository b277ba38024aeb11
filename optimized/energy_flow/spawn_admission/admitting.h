// Spawn admission's tensors, the same on both paths; a path says how a pass is done.
#pragma once

#include <ATen/ATen.h>

#include "kernels/energy_flow/spawn_admission/arguments.h"
#include "optimized/common/tensors.h"
#include "src/energy_flow/common/spawn_checks.h"

namespace twinbench::energy_flow::spawn_admission {

template <class Real>
class Admitting : public Runnable {
 public:
  Admitting(const NamedTensors& inputs, const Setting& setting)
      : backward_(setting.backward()), inputs_(inputs), results_(empty_results(setting)) {
    const Extents extents = {.samples = setting.size("samples"),
                             .slots = static_cast<std::int32_t>(setting.size("slots"))};
    const Asking asking = {.status = given<std::uint8_t>(inputs_, "status"),
                           .spawn_count = given<std::int32_t>(inputs_, "spawn_count"),
                           .created = given<std::int32_t>(inputs_, "created")};
    if (backward_) {
      back_ = {.extents = extents,
               .asking = asking,
               .grad_born_position = given<Real>(inputs_, "grad_born_position"),
               .grad_born_energy = given<Real>(inputs_, "grad_born_energy"),
               .grad_position = data<Real>(results_["grad_position"]),
               .grad_child_energy = data<Real>(results_["grad_child_energy"])};
      return;
    }
    forward_ = {.extents = extents,
                .asking = asking,
                .position = given<Real>(inputs_, "position"),
                .child_energy = given<Real>(inputs_, "child_energy"),
                .parent = data<std::int32_t>(results_["parent"]),
                .new_created = data<std::int32_t>(results_["new_created"]),
                .dropped = data<std::int32_t>(results_["dropped"]),
                .born_position = data<Real>(results_["born_position"]),
                .born_energy = data<Real>(results_["born_energy"])};
  }

  void run() override { backward_ ? admit_back(back_) : admit(forward_); }
  NamedTensors outputs() override { return results_; }

 protected:
  virtual void admit(const ForwardArguments<Real>& a) = 0;
  virtual void admit_back(const BackwardArguments<Real>& a) = 0;

 private:
  const bool backward_;
  NamedTensors inputs_;  // kept alive: the arguments point into them
  NamedTensors results_;
  ForwardArguments<Real> forward_;
  BackwardArguments<Real> back_;
};

}  // namespace twinbench::energy_flow::spawn_admission

// The placement's tensors, the same on both paths; a path says how a pass is done.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "kernels/energy_flow/flow_placement/arguments.h"
#include "optimized/common/tensors.h"

namespace twinbench::energy_flow::flow_placement {

template <class Real>
class Placement : public Runnable {
 public:
  Placement(const NamedTensors& inputs, const Setting& setting)
      : backward_(setting.backward()), inputs_(inputs), results_(empty_results(setting)) {
    const Lattice lattice = {.samples = setting.size("samples"),
                             .width = static_cast<std::int32_t>(setting.size("width")),
                             .height = static_cast<std::int32_t>(setting.size("height")),
                             .depth = static_cast<std::int32_t>(setting.option("depth")),
                             .placed = static_cast<std::int32_t>(setting.size("placed"))};
    if (backward_) {
      back_ = {.lattice = lattice,
               .grad_energy = given<Real>(inputs_, "grad_energy"),
               .grad_surface = data<Real>(results_["grad_surface"])};
      return;
    }
    forward_ = {.lattice = lattice,
                .surface = given<Real>(inputs_, "surface"),
                .sample_key = given<std::int64_t>(inputs_, "sample_key"),
                .position = data<Real>(results_["position"]),
                .energy = data<Real>(results_["energy"]),
                .sample = data<std::int32_t>(results_["sample"]),
                .local_id = data<std::int32_t>(results_["local_id"]),
                .uid = data<std::int64_t>(results_["uid"])};
    results_["dropped"].fill_(lattice.samples * (lattice.cells() - lattice.placed));  // of the sizes alone
  }

  void run() override { backward_ ? place_back(back_) : place(forward_); }
  NamedTensors outputs() override { return results_; }

 protected:
  virtual void place(const ForwardArguments<Real>& a) = 0;
  virtual void place_back(const BackwardArguments<Real>& a) = 0;

 private:
  const bool backward_;
  NamedTensors inputs_;  // kept alive: the arguments point into them
  NamedTensors results_;
  ForwardArguments<Real> forward_;
  BackwardArguments<Real> back_;
};

}  // namespace twinbench::energy_flow::flow_placement

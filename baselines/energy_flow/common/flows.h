// One flow as the origin's storage has it: three buffers of its own, and what the host reads of it in every step.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "baselines/energy_flow/common/book.h"
#include "baselines/energy_flow/common/exploration.h"

namespace twinbench::energy_flow::flow_forward {

enum class Fate { kActive, kDone, kByAge, kAtStop, kGone };

struct Flow {
  at::Tensor position, energy, hidden, age;  // [3], [1], [layers, width], []
  std::int64_t local_id = 0, steps = 0;      // steps: the host's own record of the age
  Fate fate = Fate::kActive;
  double distance = 0;  // to the plane that it was projected to
};

// Children that one flow asks for, of its place before the step.
struct Request {
  at::Tensor position, energy, hidden;
  std::int64_t count = 0;
  std::size_t step = 0;  // of its parent, among all flow-steps of the run
};

// What the networks say of several flows.
struct Moves {
  at::Tensor energy, raw, move, hidden, gate, child;
  at::Tensor folded = {};  // raw, reflected
};

// Where flows start: coordinates of the surface's cells on the device, made once.
class Grid {
 public:
  Grid(const Setting& setting, const at::TensorOptions& options);
  // Five reads; each of the three buffers is made and filled.
  Flow placed(std::int64_t s, const at::Tensor& cells, std::int64_t layers, std::int64_t hidden) const;
  double start_depth() const { return start_depth_; }
  at::Tensor no_age() const { return age_; }

 private:
  double start_depth_;
  std::int64_t width_;
  std::vector<at::Tensor> x_, y_, batch_, on_z0_, distance_, place_;  // a tensor each
  at::Tensor age_;
};

struct Readings {
  bool live, at_z0, at_zd, aged;
  double x, y;     // magnitudes of raw
  double measure;  // length of the move, or the gate; not finite exactly when raw is not
  double nearer;   // distance to the nearer plane, below zero where that is zD
};
// The sin: an operator or a few, then a host that waits for one value, eight times.
Readings read(const Flow& flow, const Moves& moves, std::int64_t i, const HostRules& rules);

// Three fresh buffers and three copies; the old ones are freed.
void scatter(Flow& flow, const Moves& moves, std::int64_t i, bool kill);

// The first rule that applies, after the update. Returns the children that the flow asks for.
std::int64_t settle(Flow& flow, const Readings& readings, const HostRules& rules, Book& book);

}  // namespace twinbench::energy_flow::flow_forward

// A flow as the collection of its sample's surface takes it (C11, C16). In the namespace of the component that had it
// first; the whole backward pass takes it too.
#pragma once

#include "kernels/energy_flow/common/collect_cells.h"
#include "kernels/energy_flow/common/flow_arguments.h"

namespace twinbench::energy_flow::flow_forward {

// The sample's flow of that number, without its weight's factor: in no cell where there is none, or it is not done.
TWINBENCH_DEVICE surface_collection::Flow done_flow(const Arguments& a, const surface_collection::CellPart& part,
                                                    std::int32_t number) {
  namespace rule = surface_collection;
  rule::Flow flow{-1, 0.0f, 0.0f, 0.0f};
  if (number >= a.stats_of(part.sample)[kCreated]) return flow;
  const std::int32_t slot = a.slots.first(part.sample) + number;
  const float x = a.flows.x[slot], y = a.flows.y[slot], distance = a.flows.distance[slot];
  const std::int32_t age = a.flows.age[slot];
  flow.energy = a.flows.energy[slot];
  if (!is_done(a.flows.status[slot])) return flow;
  flow.cell = rule::cell_along(y, a.height) * a.width + rule::cell_along(x, a.width);
  flow.weight = rule::weight_of(flow.energy, distance, age);
  return flow;
}

}  // namespace twinbench::energy_flow::flow_forward

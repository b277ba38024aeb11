// Run energy_flow.forward: the whole forward pass of a batch of embeddings, again and again.
#include "scenarios/runner/component_source.h"

namespace twinbench::energy_flow::forward {

RunSource make_source() {
  return component_source("energy_flow.flow_forward",
                          "the whole forward pass of a batch, from embeddings to surfaces; nothing is trained",
                          {Tolerance::Kind::kBound, {1e-3, 1e-4}, {6e-2, 3e-2}, "run"});
}

}  // namespace twinbench::energy_flow::forward

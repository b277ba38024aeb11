// Run energy_flow.lifetime: micro-steps whose parameters, batches and tapes live in a pool with a budget.
#include <ATen/ATen.h>

#include "scenarios/runner/component_source.h"
#include "src/energy_flow/common/lifetime_work.h"

namespace twinbench::energy_flow::lifetime {
namespace {

// What the pool and the tape did since the run was made.
Readings work_of(const NamedTensors&, const NamedTensors& results, const Setting&) {
  const at::Tensor work = results["work"].to(at::kDouble);
  const auto column = [&](memory_lifetime::Work of) { return work[of].item<double>(); };
  return {{"cache_trim", column(memory_lifetime::kCacheTrim)},
          {"dev_alloc", column(memory_lifetime::kDevAlloc)},
          {"dev_free", column(memory_lifetime::kDevFree)},
          {"tape_live", column(memory_lifetime::kTapeLive)},
          {"tape_peak", column(memory_lifetime::kTapePeak)},
          {"reserved", column(memory_lifetime::kReserved)},
          {"peak", column(memory_lifetime::kPeak)}};
}

}  // namespace

RunSource make_source() {
  return component_source("energy_flow.memory_lifetime",
                          "micro-steps whose parameters, batches and tapes live in a pool with a budget",
                          {Tolerance::Kind::kBound, {1e-4, 1e-5}, {3e-2, 1e-2}, "step"}, Pass::kForward, work_of);
}

}  // namespace twinbench::energy_flow::lifetime

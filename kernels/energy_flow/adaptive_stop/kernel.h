// The stop's kernel, written once for the GPU and for the checked run on the host: a thread a sample, one of which
// tells the host when none goes on.
#pragma once

#include "kernels/common/simt.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/adaptive_stop/arguments.h"

namespace twinbench::energy_flow::adaptive_stop {

namespace simt = kernels::simt;

// Grid: one block. States in place; those of samples that have finished are written as they are.
struct Decide {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    int going_on = 0;
    TWINBENCH_ROLLED
    for (std::int64_t sample = simt::thread_rank(block); sample < a.samples; sample += kThreads) {
      const Look before = {a.states.before(a.step, sample), a.step > 0 ? a.flow_steps[sample] : 0};
      const Look now = looked(a.rule, a.step, before, a.counts(a.step, sample));
      a.states.set(sample, now.state);
      a.flow_steps[sample] = now.flow_steps;
      going_on += now.state.finished() ? 0 : 1;
    }
    const int left = simt::block_sum(block, going_on);
    // The host sees it at the kernel's end at the latest, which is as early as it needs to.
    if (simt::thread_rank(block) == 0 && left == 0) *a.all_finished = a.pass;
  }
};

}  // namespace twinbench::energy_flow::adaptive_stop

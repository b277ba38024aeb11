// The kernel of trainer2.rotor_update: one warp, a lane a plane, predicates instead of filters.
#pragma once

#include "kernels/common/simt.h"
#include "kernels/trainer2/rotor_update/arguments.h"
#include "kernels/trainer2/rotor_update/math.h"

namespace twinbench::trainer2::rotor_update {

namespace simt = kernels::simt;

constexpr int kThreads = simt::kWarpSize;

// Grid: one block of one warp: the documents have 6 planes.
struct Update {
  static constexpr int kMaxThreads = kThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const float scale = a.rate * -a.lior_change[0];
    float sum = 0;
    int updates = 0;
    for (std::int64_t plane = simt::thread_rank(block); plane < a.planes; plane += kThreads) {
      const Change change = change_of(scale, a.velocity[a.first_axis[plane] * a.velocity_stride],
                                      a.velocity[a.second_axis[plane] * a.velocity_stride]);
      a.theta[plane] = wrapped(a.theta[plane] + change.angle);
      sum += change.angle < 0 ? -change.angle : change.angle;
      updates += change.applied;
    }
    sum = simt::warp_sum(block, sum);
    updates = simt::warp_sum(block, updates);
    if (simt::thread_rank(block) != 0) return;
    a.updates[0] = updates;
    a.mean_change[0] = updates > 0 ? sum / static_cast<float>(updates) : 0.0f;
  }
};

}  // namespace twinbench::trainer2::rotor_update

// The kernel of trainer2.metric_update: one warp; decides, updates and reports without the host.
#pragma once

#include "kernels/common/simt.h"
#include "kernels/trainer2/common/rotor.h"
#include "kernels/trainer2/metric_update/arguments.h"
#include "kernels/trainer2/metric_update/math.h"

namespace twinbench::trainer2::metric_update {

namespace simt = kernels::simt;

constexpr int kThreads = simt::kWarpSize;

// Grid: one block of one warp: the documents have 8 axes. The mean velocity lies in shared memory, and there the planes
// turn it, a layer between barriers.
struct Update {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    auto rho = simt::shared_array<float, kMostAxes>(block);  // the mean, then turned in place
    const int thread = simt::thread_rank(block);
    const float change = a.lior_nudged[0] - a.lior_free[0];
    const Rejects before{a.rejects[0], a.rejects[1], a.rejects[2]};
    for (int axis = thread; axis < a.axes; axis += kThreads) {
      float sum = 0;
      for (std::int64_t item = 0; item < a.batch; ++item)
        sum += a.velocity[item * a.batch_stride + axis * a.axis_stride];
      rho[axis] = sum / static_cast<float>(a.batch);
    }
    block.warp_barrier();
    turn(block, a, rho);
    float total = 0, largest = 0;
    for (int axis = thread; axis < a.axes; axis += kThreads) {
      const float r = rho[axis];
      total += r * r;
      largest = simt::Larger{}(largest, r * r);
    }
    total = simt::warp_sum(block, total);
    largest = simt::warp_max(block, largest);
    const bool accepted = before.frozen == 0 && std::isfinite(change) && std::isfinite(total);
    const float moved = accepted ? move(block, a, rho, total + kEpsilon, change) : 0.0f;
    const float sum = simt::warp_sum(block, moved);
    if (thread != 0) return;
    const Rejects now = after(before, accepted, a.most_rejects);
    a.rejects[0] = now.total;
    a.rejects[1] = now.in_a_row;
    a.rejects[2] = now.frozen;
    a.report[0] = change;
    a.report[1] = accepted ? sum / static_cast<float>(a.axes) : 0.0f;
    a.report[2] = accepted ? largest : 0.0f;
  }

 private:
  // Into the frame. Ends with a barrier.
  template <class Block, class Row>
  TWINBENCH_DEVICE static void turn(Block& block, const Arguments& a, Row rho) {
    const int thread = simt::thread_rank(block);
    for (int first = 0; first < a.planes; first += a.layer) {
      for (int plane = first + thread; plane < a.planes && plane < first + a.layer; plane += kThreads) {
        const int at_a = a.first_axis[plane], at_b = a.second_axis[plane];
        const float one = rho[at_a], other = rho[at_b];
        const Turned both = turned(a.theta[plane * a.theta_stride], one, other);
        rho[at_a] = both.a;
        rho[at_b] = both.b;
      }
      block.warp_barrier();
    }
  }

  // This lane's share of the sum of |metric change|.
  template <class Block, class Row>
  TWINBENCH_DEVICE static float move(Block& block, const Arguments& a, Row rho, float total, float change) {
    auto metric = simt::shared_array<float, kMostAxes, 1>(block);  // the new one, for the couplings
    float sum = 0;
    for (int axis = simt::thread_rank(block); axis < a.axes; axis += kThreads) {
      const float by = metric_change(rho[axis], total, change, a.rate), moved = moved_metric(a.metric[axis], by);
      a.metric[axis] = moved;
      metric[axis] = moved;
      sum += std::fabs(by);
    }
    block.warp_barrier();
    for (int pair = simt::thread_rank(block); a.blocks && pair < a.axes / 2; pair += kThreads)
      a.coupling[pair] = moved_coupling(a.coupling[pair], rho[2 * pair], rho[2 * pair + 1], total, change, a.rate,
                                        metric[2 * pair], metric[2 * pair + 1]);
    return sum;
  }
};

}  // namespace twinbench::trainer2::metric_update

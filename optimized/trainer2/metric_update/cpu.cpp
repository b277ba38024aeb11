// Optimized trainer2.metric_update on the CPU: one pass for each update, no ATen operator, no allocation.
#include <array>

#include "kernels/trainer2/common/rotor.h"
#include "kernels/trainer2/metric_update/math.h"
#include "optimized/trainer2/metric_update/plan.h"

namespace twinbench::trainer2::metric_update {
namespace {

using Row = std::array<float, kMostAxes>;

void mean_velocity(const Arguments& a, Row& mean) {
  std::fill_n(mean.begin(), a.axes, 0.0f);
  for (std::int64_t item = 0; item < a.batch; ++item)
    for (int axis = 0; axis < a.axes; ++axis) mean[axis] += a.velocity[item * a.batch_stride + axis * a.axis_stride];
  for (int axis = 0; axis < a.axes; ++axis) mean[axis] /= static_cast<float>(a.batch);
}

// In the frame; the planes in their order.
void turn(const Arguments& a, const Row& mean, Row& rho) {
  std::copy_n(mean.begin(), a.axes, rho.begin());
  for (int plane = 0; plane < a.planes; ++plane) {
    float &one = rho[a.first_axis[plane]], &other = rho[a.second_axis[plane]];
    const Turned both = turned(a.theta[plane * a.theta_stride], one, other);
    one = both.a;
    other = both.b;
  }
}

class CpuUpdate final : public Plan {
 public:
  using Plan::Plan;

  void run() override {
    for (std::int64_t step = 0; step < steps(); ++step) update(of_step(step));
  }

 private:
  void update(const Arguments& a) {
    const float change = a.lior_nudged[0] - a.lior_free[0];
    const Rejects before{a.rejects[0], a.rejects[1], a.rejects[2]};
    mean_velocity(a, mean_);
    turn(a, mean_, rho_);
    float total = 0, largest = 0, moved = 0;
    for (int axis = 0; axis < a.axes; ++axis) {
      const float square = rho_[axis] * rho_[axis];
      total += square;
      largest = square > largest ? square : largest;  // a NaN is in the total, which decides
    }
    const bool accepted = before.frozen == 0 && std::isfinite(change) && std::isfinite(total);
    if (accepted) moved = move(a, total + kEpsilon, change);
    const Rejects now = after(before, accepted, a.most_rejects);
    a.rejects[0] = now.total;
    a.rejects[1] = now.in_a_row;
    a.rejects[2] = now.frozen;
    a.report[0] = change;
    a.report[1] = accepted ? moved / static_cast<float>(a.axes) : 0.0f;
    a.report[2] = accepted ? largest : 0.0f;
  }

  float move(const Arguments& a, float total, float change) const {
    float sum = 0;
    for (int axis = 0; axis < a.axes; ++axis) {
      const float by = metric_change(rho_[axis], total, change, a.rate);
      a.metric[axis] = moved_metric(a.metric[axis], by);
      sum += std::fabs(by);
    }
    for (int block = 0; a.blocks && block < a.axes / 2; ++block)
      a.coupling[block] = moved_coupling(a.coupling[block], rho_[2 * block], rho_[2 * block + 1], total, change, a.rate,
                                         a.metric[2 * block], a.metric[2 * block + 1]);
    return sum;
  }

  Row mean_{}, rho_{};
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuUpdate>(inputs, setting);
}

}  // namespace twinbench::trainer2::metric_update

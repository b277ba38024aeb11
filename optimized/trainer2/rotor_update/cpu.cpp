// Optimized trainer2.rotor_update on the CPU: one pass over the planes for each update, no ATen operator.
#include "kernels/trainer2/rotor_update/math.h"
#include "optimized/trainer2/rotor_update/plan.h"

namespace twinbench::trainer2::rotor_update {
namespace {

class CpuUpdate final : public Plan {
 public:
  using Plan::Plan;

  void run() override {
    for (std::int64_t step = 0; step < steps(); ++step) update(of_step(step));
  }

 private:
  static void update(const Arguments& a) {
    const float scale = a.rate * -a.lior_change[0];
    double sum = 0;
    std::int64_t updates = 0;
    for (std::int64_t plane = 0; plane < a.planes; ++plane) {
      const Change change = change_of(scale, a.velocity[a.first_axis[plane] * a.velocity_stride],
                                      a.velocity[a.second_axis[plane] * a.velocity_stride]);
      a.theta[plane] = wrapped(a.theta[plane] + change.angle);
      sum += std::abs(change.angle);
      updates += change.applied;
    }
    a.updates[0] = updates;
    a.mean_change[0] = updates > 0 ? static_cast<float>(sum / static_cast<double>(updates)) : 0.0f;
  }
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuUpdate>(inputs, setting);
}

}  // namespace twinbench::trainer2::rotor_update

// Optimized energy_flow.metrics on the CPU: sums in one record, evaluated once a window; no operator, no allocation.
#include <ATen/ATen.h>

#include "optimized/energy_flow/common/metric_sums.h"
#include "optimized/energy_flow/metrics/plan.h"

namespace twinbench::energy_flow::metrics {
namespace {

class CpuMetrics final : public Plan<float> {
 public:
  using Plan::Plan;

 private:
  void take(std::int64_t, const MicroStep<float>& step, bool is_first) override {
    if (is_first) record_ = {};
    add_micro_step(record_, step);
  }
  void window_ended(std::int64_t window) override { evaluate_window(window, record_); }

  MetricRecord record_ = {};
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuMetrics>(inputs, setting);
}

}  // namespace twinbench::energy_flow::metrics

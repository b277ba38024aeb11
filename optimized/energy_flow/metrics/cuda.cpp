// Optimized energy_flow.metrics on CUDA: a kernel a micro-step adds to the record, the window's last one also writes it
// to the host; windows are evaluated as their records arrive, and nobody waits.
#include <ATen/ATen.h>

#include <atomic>

#include "optimized/common/cuda.h"
#include "optimized/energy_flow/metrics/plan.h"

namespace twinbench::energy_flow::metrics {
namespace {

// A window's record in memory of both, and its number, which is written last.
struct alignas(256) Published {
  MetricRecord record;
  std::int64_t number;
};

class CudaMetrics final : public Plan<float> {
 public:
  CudaMetrics(const NamedTensors& inputs, const Setting& setting)
      : Plan(inputs, setting),
        record_(at::zeros({kSlots}, inputs["rows"].options())),
        published_(static_cast<std::int64_t>(sizeof(Published)) * windows_) {
    pending_.reserve(static_cast<std::size_t>(windows_));
  }

  void run() override {
    pending_.clear();
    next_ = 0;
    Plan::run();
  }

  // After the last run's kernels, which the read of the record waits for.
  NamedTensors outputs() override {
    record_.to(at::kCPU);
    evaluate_arrived();
    return Plan::outputs();
  }

 private:
  void take(std::int64_t window, const MicroStep<float>& step, bool is_first) override {
    RecordArguments arguments{
        .step = step, .is_first = is_first, .record = reinterpret_cast<MetricRecord*>(data<std::int64_t>(record_))};
    if (step.norm != nullptr) {  // the window's last
      arguments.published = &slot(window)->record;
      arguments.sequence = &slot(window)->number;
      arguments.number = ++number_;
    }
    launch(arguments, stream());
  }

  void window_ended(std::int64_t window) override {
    pending_.push_back({window, number_});
    evaluate_arrived();
  }

  void evaluate_arrived() {
    while (next_ < pending_.size()) {
      const auto [window, number] = pending_[next_];
      if (std::atomic_ref(slot(window)->number).load(std::memory_order_acquire) != number) return;
      evaluate_window(window, slot(window)->record);
      ++next_;
    }
  }

  Published* slot(std::int64_t window) const { return static_cast<Published*>(published_.where()) + window; }

  struct Pending {
    std::int64_t window, number;
  };
  at::Tensor record_;
  MemoryOfBoth published_;
  std::int64_t number_ = 0;  // of records published, over all runs
  std::vector<Pending> pending_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaMetrics>(inputs, setting);
}

}  // namespace twinbench::energy_flow::metrics

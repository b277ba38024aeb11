// energy_flow.adaptive_stop, optimized on CUDA: a kernel a step, no read and nothing allocated; every eighth step the
// host looks at a flag without waiting, and issues no more steps once that is up.
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/adaptive_stop/stop.h"
#include "optimized/energy_flow/common/stop_flag.h"

namespace twinbench::energy_flow::adaptive_stop {
namespace {

class CudaStop final : public Stop {
 public:
  CudaStop(const NamedTensors& inputs, const Setting& setting) : Stop(inputs, setting) {
    a_.all_finished = flag_.where();
  }

  void run() override {
    issued_ = polls_ = 0;
    if (a_.samples == 0) return;
    a_.pass = flag_.next_pass();
    for (a_.step = 0;; ++a_.step) {
      if (a_.step < a_.rule.max_steps && polls_before(a_.step)) {
        ++polls_;
        if (flag_.raised()) break;
      }
      launch_decide(a_, stream());
      if (a_.step == a_.rule.max_steps) break;
    }
    issued_ = a_.step;
  }

 private:
  StopFlag flag_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaStop>(inputs, setting);
}

}  // namespace twinbench::energy_flow::adaptive_stop

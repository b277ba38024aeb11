// Optimized data_parallel: one all-reduce a bucket and window, begun while the backward pass goes on.
#include "optimized/energy_flow/common/rank_trainer.h"
#include "src/energy_flow/common/rank_windows.h"

namespace twinbench::energy_flow::data_parallel {
namespace {

class DataParallelOptimized : public RankWindows {
 public:
  DataParallelOptimized(const NamedTensors& inputs, const Setting& setting) : RankWindows(inputs, setting) {
    const RankRule rule{.clip = setting.option("clip"),
                        .learning_rate = setting.option("learning_rate"),
                        .weight_decay = setting.option("weight_decay"),
                        .bucket_bytes = static_cast<std::int64_t>(setting.option("bucket_bytes"))};
    for (int rank = 0; rank < rows().ranks; ++rank)
      trainers_.emplace_back(alone() ? nullptr : &group(rank), places(), state(rank).parameters.numel(), rule);
  }

 private:
  void window(std::vector<WindowEnd>& ends) override {
    const std::int64_t steps = rows().micro_steps;
    for (int rank = 0; rank < rows().ranks; ++rank)
      for (std::int64_t i = 0; i < steps; ++i) {
        const at::Tensor given = gradient(rank, i).contiguous();
        trainers_[static_cast<std::size_t>(rank)].micro_step(given.const_data_ptr<float>(), rows().at(rank, i), i == 0,
                                                             i + 1 == steps);
      }
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      const State& now = state(static_cast<int>(rank));
      ends[rank] =
          trainers_[rank].finish_window(now.parameters.mutable_data_ptr<float>(), now.first.mutable_data_ptr<float>(),
                                        now.second.mutable_data_ptr<float>(), rows().all, next_update());
    }
  }

  at::Tensor mean_gradient() override { return trainers_.front().mean_gradient(); }

  std::vector<RankTrainer> trainers_;  // by rank
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<DataParallelOptimized>(inputs, setting);
}

}  // namespace twinbench::energy_flow::data_parallel

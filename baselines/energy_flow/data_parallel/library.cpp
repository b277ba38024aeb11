// Stock LibTorch: accumulated locally, one coalesced all-reduce a window, and the fused AdamW over lists of tensors.
// Not c10d's Reducer, which DistributedDataParallel is made of: it waits for autograd's hooks, and gradients are inputs
// here.
#include "src/energy_flow/common/rank_windows.h"

namespace twinbench::energy_flow::data_parallel {
namespace {

class DataParallelLibrary : public RankWindows {
 public:
  DataParallelLibrary(const NamedTensors& inputs, const Setting& setting)
      : RankWindows(inputs, setting),
        clip_(setting.option("clip")),
        rate_(setting.option("learning_rate")),
        decay_(setting.option("weight_decay")),
        ranks_(static_cast<std::size_t>(rows().ranks)) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      Rank& mine = ranks_[rank];
      const State& all = state(static_cast<int>(rank));
      mine.gradient = at::zeros_like(all.parameters);
      mine.updates = at::zeros({}, at::kFloat);
      for (const TensorPlace& place : places()) {
        const auto part = [&](const at::Tensor& tensor) { return tensor.narrow(0, place.first, place.count); };
        mine.gradients.push_back(part(mine.gradient));
        mine.values.push_back(part(all.parameters));
        mine.firsts.push_back(part(all.first));
        mine.seconds.push_back(part(all.second));
      }
      mine.counts.assign(places().size(), mine.updates);
    }
  }

 private:
  struct Rank {
    at::Tensor gradient, updates;
    std::vector<at::Tensor> gradients, values, firsts, seconds, counts;
  };

  void window(std::vector<WindowEnd>& ends) override {
    for (int rank = 0; rank < rows().ranks; ++rank) {
      Rank& mine = ranks_[static_cast<std::size_t>(rank)];
      mine.gradient.zero_();
      for (std::int64_t micro_step = 0; micro_step < rows().micro_steps; ++micro_step)
        if (const std::int64_t count = rows().at(rank, micro_step); count > 0)
          mine.gradient.add_(gradient(rank, micro_step), static_cast<double>(count) / static_cast<double>(rows().all));
      if (!alone()) group(rank).begin_all_reduce_together(mine.gradients);
    }
    for (std::size_t rank = 0; rank < ends.size(); ++rank) ends[rank] = clip_and_update(static_cast<int>(rank));
  }

  WindowEnd clip_and_update(int rank) {
    Rank& mine = ranks_[static_cast<std::size_t>(rank)];
    if (!alone()) group(rank).wait_all();
    by_ = 1;
    const double norm =
        at::linalg_vector_norm(mine.gradient, 2, at::OptionalIntArrayRef(), false, at::kDouble).item<double>();
    if (!std::isfinite(norm)) return {false, norm};
    by_ = clip_coefficient(norm, clip_);
    mine.gradient.mul_(by_);
    mine.updates.fill_(static_cast<double>(next_update()));
    at::_fused_adamw_(mine.values, mine.gradients, mine.firsts, mine.seconds, {}, mine.counts, rate_, kBetaFirst,
                      kBetaSecond, decay_, kAdamEpsilon, /*amsgrad=*/false, /*maximize=*/false);
    return {true, norm};
  }

  at::Tensor mean_gradient() override { return ranks_.front().gradient / by_; }

  double clip_, rate_, decay_, by_ = 1;  // the last: what clipping left
  std::vector<Rank> ranks_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<DataParallelLibrary>(inputs, setting);
}

}  // namespace twinbench::energy_flow::data_parallel

// Baseline of data_parallel: after each micro-step a blocking all-reduce for every tensor, then tensor by tensor an
// update.
#include "src/energy_flow/common/rank_windows.h"

namespace twinbench::energy_flow::data_parallel {
namespace {

class DataParallelBaseline : public RankWindows {
 public:
  DataParallelBaseline(const NamedTensors& inputs, const Setting& setting)
      : RankWindows(inputs, setting),
        clip_(setting.option("clip")),
        rate_(setting.option("learning_rate")),
        decay_(setting.option("weight_decay")),
        unweighted_(setting.on("unweighted_mean")) {
    for (int rank = 0; rank < rows().ranks; ++rank) {
      gradients_.push_back(at::zeros_like(state(rank).parameters));
      sums_.emplace_back();
      for (const TensorPlace& place : places())
        sums_.back().push_back(gradients_.back().narrow(0, place.first, place.count));
    }
    weighted_.resize(gradients_.size());
  }

 private:
  void window(std::vector<WindowEnd>& ends) override {
    for (const auto& sums : sums_)
      for (const at::Tensor& sum : sums) sum.zero_();
    for (std::int64_t micro_step = 0; micro_step < rows().micro_steps; ++micro_step)
      for (std::size_t tensor = places().size(); tensor-- > 0;) reduce(micro_step, tensor);
    for (std::size_t rank = 0; rank < ends.size(); ++rank) ends[rank] = clip_and_update(static_cast<int>(rank));
  }

  // One tensor of a micro-step, whose backward pass is over: every rank waits until all have it.
  void reduce(std::int64_t micro_step, std::size_t tensor) {
    const TensorPlace& place = places()[tensor];
    for (int rank = 0; rank < rows().ranks; ++rank) {
      const std::int64_t mine = rows().at(rank, micro_step);
      const at::Tensor part = gradient(rank, micro_step).narrow(0, place.first, place.count);
      // A rank without rows has run no backward pass: it takes part with zeros.
      weighted_[static_cast<std::size_t>(rank)] = mine > 0 ? part.mul(weight(mine)) : at::zeros_like(part);
      if (!alone()) group(rank).begin_all_reduce(weighted_[static_cast<std::size_t>(rank)]);
    }
    for (int rank = 0; rank < rows().ranks; ++rank) {
      if (!alone()) group(rank).wait_all();
      sums_[static_cast<std::size_t>(rank)][tensor].add_(weighted_[static_cast<std::size_t>(rank)]);
    }
  }

  double weight(std::int64_t mine) const {
    if (unweighted_) return 1 / static_cast<double>(rows().ranks * rows().micro_steps);
    return static_cast<double>(mine) / static_cast<double>(rows().all);
  }

  WindowEnd clip_and_update(int rank) {
    const auto& sums = sums_[static_cast<std::size_t>(rank)];
    std::vector<at::Tensor> norms;
    for (const at::Tensor& sum : sums)
      norms.push_back(at::linalg_vector_norm(sum, 2, at::OptionalIntArrayRef(), false, at::kDouble));
    const double norm = at::linalg_vector_norm(at::stack(norms), 2).item<double>();
    by_ = 1;
    if (!std::isfinite(norm)) return {false, norm};
    by_ = clip_coefficient(norm, clip_);
    for (std::size_t i = 0; i < sums.size(); ++i) update(rank, places()[i], sums[i].mul_(by_));
    return {true, norm};
  }

  void update(int rank, const TensorPlace& place, const at::Tensor& gradient) {
    const auto n = static_cast<double>(next_update());
    const double root = std::sqrt(1 - std::pow(kBetaSecond, n)), step = rate_ / (1 - std::pow(kBetaFirst, n));
    const auto mine = [&](const at::Tensor& all) { return all.narrow(0, place.first, place.count); };
    const at::Tensor value = mine(state(rank).parameters), first = mine(state(rank).first),
                     second = mine(state(rank).second);
    value.mul_(1 - rate_ * decay_);
    first.lerp_(gradient, 1 - kBetaFirst);
    second.mul_(kBetaSecond);
    second.addcmul_(gradient, gradient, 1 - kBetaSecond);
    value.addcdiv_(first, at::sqrt(second).div_(root).add_(kAdamEpsilon), -step);
  }

  at::Tensor mean_gradient() override { return gradients_.front() / by_; }

  double clip_, rate_, decay_, by_ = 1;           // the last: what clipping left
  bool unweighted_;                               // the documented mistake
  std::vector<at::Tensor> gradients_, weighted_;  // by rank
  std::vector<std::vector<at::Tensor>> sums_;     // by rank and tensor, views of the gradients
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<DataParallelBaseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::data_parallel

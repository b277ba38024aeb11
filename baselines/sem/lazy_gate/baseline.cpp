// Baseline of sem.lazy_gate: no gate. Every call is solved from zero, whether its answer is known or not.
#include <ATen/ATen.h>

#include <algorithm>

#include "baselines/sem/common/conjugate_gradients.h"
#include "src/component.h"

namespace twinbench::sem::lazy_gate {
namespace {

// In fp64 it is the oracle: as near as that arithmetic comes, however many iterations it takes.
ConjugateGradients::Stop stop_of(const Setting& setting) {
  const bool oracle = setting.dtype == Dtype::kFp64;
  const auto most = static_cast<std::int64_t>(setting.option("most_iterations"));
  return {oracle ? 1e-13 : setting.option("tolerance"), oracle ? std::max(most, 8 * setting.size("dim") + 200) : most};
}

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        calls_(setting.size("calls")),
        solver_(inputs, setting.size("dim"), setting.option("dt") / 2, stop_of(setting)) {
    Baseline::reset();
  }

  void reset() override { cache_ = inputs_["cache"].clone(at::MemoryFormat::Contiguous); }

  // What a call leaves behind is kept, as the others do; nothing here reads it.
  void run() override {
    std::vector<at::Tensor> solved, nonfinite;
    std::vector<std::int64_t> iterations;
    for (std::int64_t call = 0; call < calls_; ++call) {
      const Field given = from_planes(inputs_["field"].select(1, call));
      iterations.push_back(0);
      const Field x = solver_.solve(solver_.operate(given, -1), 1, iterations.back());
      const at::Tensor finite = at::all(at::isfinite(at::add(x.re, x.im)), 1);
      solved.push_back(planes_of(x));
      nonfinite.push_back(at::sum(at::logical_not(finite), {0}, true, at::kInt));
      cache_ = at::where(finite.unsqueeze(1), solved.back(), cache_);
    }
    results_ = {{"x", at::stack(solved, 1)},
                {"nonfinite_rows", at::cat(nonfinite)},
                {"skipped", at::zeros({calls_}, nonfinite.front().options())},
                {"iterations", at::tensor(iterations, at::kInt).to(cache_.device())}};
  }

  NamedTensors outputs() override {
    NamedTensors all = results_;
    all.set("cache", cache_);
    return all;
  }

 private:
  NamedTensors inputs_, results_;
  std::int64_t calls_;
  ConjugateGradients solver_;
  at::Tensor cache_;  // [2, rows, dim]
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::sem::lazy_gate

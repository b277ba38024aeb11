// Optimized energy_flow.memory_footprint: the model's formulas, once; no tensor is made.
#include <ATen/ops/empty.h>

#include <algorithm>

#include "src/component.h"
#include "src/energy_flow/common/footprint_setting.h"

namespace twinbench::energy_flow::memory_footprint {
namespace {

class Optimized final : public Runnable {
 public:
  Optimized(const NamedTensors& inputs, const Setting& setting)
      : sizes_(model_sizes(setting)), active_(inputs["active"].contiguous()) {
    for (const auto [name, count] : {std::pair("population", 4), std::pair("parameters", int{kParts}),
                                     std::pair("saved", 2), std::pair("operations", 1)})
      results_.set(name, at::empty({count}, at::kLong));
    results_.set("bytes", at::empty({9}, at::kDouble));
    population_ = integers("population"), parameters_ = integers("parameters"), saved_ = integers("saved"),
    operations_ = integers("operations"), bytes_ = results_["bytes"].mutable_data_ptr<double>();
  }

  void run() override {
    const Population flows = population_of(sizes_);
    std::copy_n(std::array{flows.requested, flows.quota, flows.admitted, flows.dropped}.begin(), 4, population_);
    std::ranges::copy(parameters_of(sizes_), parameters_);
    saved_[0] = saved_by_baseline(sizes_), saved_[1] = saved_by_optimized(sizes_);
    *operations_ = operations_of_flow_step(sizes_);
    const Footprint of = footprint_of(sizes_, active());
    std::ranges::copy(std::array{of.weights, of.gradients, of.moments, of.storage, of.batches, of.baseline_tape,
                                 of.optimized_tape, of.baseline(), of.optimized()},
                      bytes_);
  }

  NamedTensors outputs() override { return results_; }

 private:
  std::span<const std::int64_t> active() const {
    return {active_.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(active_.numel())};
  }
  std::int64_t* integers(const char* name) { return results_[name].mutable_data_ptr<std::int64_t>(); }

  const ModelSizes sizes_;
  const at::Tensor active_;
  NamedTensors results_;
  std::int64_t *population_, *parameters_, *saved_, *operations_;
  double* bytes_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Optimized>(inputs, setting);
}

}  // namespace twinbench::energy_flow::memory_footprint

// Optimized energy_flow.surface_collection on CUDA: one launch, or passes with the cells' sums in device memory.
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/surface_collection/plan.h"

namespace twinbench::energy_flow::surface_collection {
namespace {

class CudaCollection final : public Plan {
 public:
  CudaCollection(const NamedTensors& inputs, const Setting& setting)
      : Plan(inputs, setting), in_passes_(setting.on("atomic_maximum")) {
    if (!in_passes_) return;
    const std::int64_t cells = setting.size("batch") * setting.size("cells");
    // Two words of 8 bytes a cell, then two of 4.
    words_ = at::empty({3 * cells}, at::TensorOptions(setting.device).dtype(at::kLong));
    auto* const words = reinterpret_cast<unsigned long long*>(data<std::int64_t>(words_));
    arguments_.shares = words;
    arguments_.energies = words + cells;
    arguments_.largest_weight = reinterpret_cast<float*>(words + 2 * cells);
    arguments_.magnitude = reinterpret_cast<unsigned*>(words + 2 * cells) + cells;
  }

  void run() override {
    if (in_passes_)
      launch_in_passes(arguments_, stream());
    else
      launch(arguments_, stream());
  }

 private:
  const bool in_passes_;
  at::Tensor words_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaCollection>(inputs, setting);
}

}  // namespace twinbench::energy_flow::surface_collection

// Baseline of energy_flow.output_collector: the map is walked on the host, a product and a write for every cell.
#include <ATen/ATen.h>

#include "baselines/common/tape.h"
#include "src/energy_flow/common/surface_map.h"

namespace twinbench::energy_flow::output_collector {
namespace {

class Baseline final : public TapeBaseline {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting) : TapeBaseline(inputs, setting) {}

 private:
  void compute() override {
    const std::int64_t batch = setting_.size("batch"), entries = setting_.size("entries");
    const at::Tensor &energy = inputs_["energy"], weights = inputs_["cell_weight"].reshape({-1});
    if (batch == 0) return result("embedding", energy.new_empty({0, setting_.size("embedding")}));
    const at::Tensor surface = at::zeros({batch, setting_.size("cells")}, energy.options());
    const at::Tensor keys = inputs_["cell"].cpu().contiguous();  // the host's own: on a CPU no copy
    for (std::int64_t sample = 0; sample < batch; ++sample)
      for (std::int64_t entry = 0; entry < entries; ++entry) {
        const std::int64_t cell = keys.const_data_ptr<std::int64_t>()[sample * entries + entry];
        if (cell == kNoEntry) continue;
        const at::Tensor value = at::mul(energy.select(0, sample).select(0, entry), weights.select(0, cell));
        surface.select(0, sample).select(0, cell).copy_(value);
      }
    const at::Tensor first = layer_norm(at::gelu(linear(surface, "weight_1", "bias_1")), "gain_1", "shift_1");
    const at::Tensor second = layer_norm(at::gelu(linear(first, "weight_2", "bias_2")), "gain_2", "shift_2");
    result("embedding", linear(second, "weight_3", "bias_3"));
  }
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::output_collector

// Optimized energy_flow.output_collector on CUDA: four kernels, the map's rows and three layers; 0 reads.
#include <ATen/ops/empty.h>

#include "kernels/energy_flow/output_collector/arguments.h"
#include "optimized/common/cuda.h"
#include "optimized/common/packing.h"

namespace twinbench::energy_flow::output_collector {
namespace {

class CudaCollector final : public Runnable {
 public:
  CudaCollector(const NamedTensors& inputs, const Setting& setting) : results_(empty_results(setting)) {
    const bool round = rounds_operands(setting);
    const std::int64_t rows = setting.size("batch");
    for (const auto& [name, tensor] : inputs)
      inputs_.set(name, name.rfind("weight_", 0) == 0 ? operand_of(tensor, setting, round ? at::kBFloat16 : at::kFloat)
                                                      : tensor.contiguous());
    const auto floats = [&](const std::string& name) { return inputs_[name].const_data_ptr<float>(); };
    surface_ = matrix(rows, setting.size("cells"));
    map_ = {.rows = rows,
            .cells = setting.size("cells"),
            .entries = setting.size("entries"),
            .energy = floats("energy"),
            .cell = inputs_["cell"].const_data_ptr<std::int64_t>(),
            .cell_weight = floats("cell_weight"),
            .surface = data<float>(surface_),
            .round = round};
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string number = std::to_string(i + 1), before = std::to_string(i);
      const at::Tensor& weight = inputs_["weight_" + number];
      LayerArguments& layer = layers_[i];
      layer = {.rows = rows,
               .inner = weight.size(1),
               .columns = weight.size(0),
               .x = i == 0 ? map_.surface : layers_[i - 1].out,
               .weight = round ? nullptr : weight.const_data_ptr<float>(),
               .weight_bf16 = round ? data<std::uint16_t>(weight) : nullptr,
               .bias = floats("bias_" + number)};
      if (i > 0) {
        layer.gain = floats("gain_" + before);
        layer.shift = floats("shift_" + before);
        layer.moments = layers_[i - 1].out_moments;
      }
      if (i == 2) {
        layer.out = data<float>(results_["embedding"]);
        continue;
      }
      hidden_[i] = matrix(rows, layer.columns);
      moments_[i] = matrix(rows, 2 * pieces_of(layer.columns));
      layer.out = data<float>(hidden_[i]);
      layer.out_moments = data<float>(moments_[i]);
    }
  }

  void run() override {
    launch_map(map_, stream());
    for (const LayerArguments& layer : layers_) launch_layer(layer, stream());
  }
  NamedTensors outputs() override { return results_; }

 private:
  at::Tensor matrix(std::int64_t rows, std::int64_t columns) const {
    return at::empty({rows, columns}, results_["embedding"].options());
  }

  NamedTensors inputs_, results_;
  at::Tensor surface_, hidden_[2], moments_[2];
  MapArguments map_;
  LayerArguments layers_[3];
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaCollector>(inputs, setting);
}

}  // namespace twinbench::energy_flow::output_collector

// Embeddings to surfaces on the CUDA path (C04), as the whole forward and the training step take it: three kernels, all
// rows at once.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "kernels/common/stream.h"
#include "kernels/energy_flow/common/mapper_launch.h"
#include "optimized/common/packing.h"
#include "optimized/common/tensors.h"

namespace twinbench::energy_flow::flow_forward {
inline namespace TWINBENCH_FORM {

class DeviceMapper {
 public:
  // embedding: [rows, embedding], contiguous, read by every run.
  DeviceMapper(const NamedTensors& inputs, const Setting& setting, const at::Tensor& embedding) : inputs_(inputs) {
    const bool round = rounds_operands(setting);
    const std::int64_t rows = embedding.size(0);
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string number = std::to_string(i + 1), before = std::to_string(i);
      const at::Tensor& weight = kept_.emplace_back(
          operand_of(inputs_["mapper_weight_" + number], setting, round ? at::kBFloat16 : at::kFloat));
      output_collector::LayerArguments& layer = layers_[i];
      layer = {.rows = rows,
               .inner = weight.size(1),
               .columns = weight.size(0),
               .x = i == 0 ? embedding.const_data_ptr<float>() : layers_[i - 1].out,
               .weight = round ? nullptr : data<float>(weight),
               .weight_bf16 = round ? data<std::uint16_t>(weight) : nullptr,
               .bias = floats("mapper_bias_" + number)};
      if (i > 0) {
        layer.gain = floats("mapper_gain_" + before);
        layer.shift = floats("mapper_shift_" + before);
        layer.moments = layers_[i - 1].out_moments;
      }
      const auto made = [&](at::IntArrayRef shape) {
        return kept_.emplace_back(at::zeros(shape, embedding.options()));
      };
      surface_ = made({rows, layer.columns});
      layer.out = data<float>(surface_);
      if (i < 2) layer.out_moments = data<float>(made({2, rows, output_collector::pieces_of(layer.columns)}));
    }
    layers_[2].scale = floats("mapper_scale");
    layers_[2].offset = floats("mapper_offset");
    layers_[2].cell_offset = floats("mapper_cell_offset");
    kept_.push_back(embedding);
  }

  void run(kernels::Stream stream) const {
    for (std::size_t i = 0; i < 2; ++i) launch_mapper_layer(layers_[i], stream);
    launch_mapper_surface(layers_[2], stream);
  }
  const at::Tensor& surface() const { return surface_; }  // [rows, cells]

 private:
  const float* floats(const std::string& name) { return given<float>(inputs_, name); }

  NamedTensors inputs_;  // kept alive: the arguments point into them
  std::vector<at::Tensor> kept_;
  output_collector::LayerArguments layers_[3];
  at::Tensor surface_;
};

}  // namespace TWINBENCH_FORM
}  // namespace twinbench::energy_flow::flow_forward

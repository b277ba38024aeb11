// The networks' parameters as the CUDA path's kernels take them, for the steps and for their way back: made from the
// parameters alone, so that whoever knows where each element comes from can make them again in place.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "optimized/common/packing.h"
#include "optimized/energy_flow/common/parameters.h"
#include "optimized/energy_flow/common/tile_packs.h"

namespace twinbench::energy_flow::flow_forward {

// [3 * width, inner] of a recurrent layer, transposed, each gate's channels padded.
inline at::Tensor turned(const at::Tensor& gates, std::int64_t stride) {
  const std::int64_t width = gates.size(0) / 3, inner = gates.size(1);
  return at::constant_pad_nd(gates.reshape({3, width, inner}), {0, 0, 0, stride - width})
      .reshape({3 * stride, inner})
      .t();
}

struct FlowPacks {
  // back: what the way back multiplies too.
  FlowPacks(const NamedTensors& inputs, const Setting& setting, bool back) : neuron(packed_neuron(inputs, setting)) {
    const std::int64_t hidden = setting.size("hidden");
    const std::int32_t stride = padded_width(static_cast<std::int32_t>(hidden));
    const bool gate = setting.option("spawn") == 2;
    constexpr std::int64_t kAlignment = 8;  // columns: rows of whole sectors of 32 bytes
    const FirstLayers first_of_heads = first_layers(inputs, gate, kAlignment);
    columns = first_of_heads.columns;
    first = as_tiles(operand_of(first_of_heads.weight, setting));
    first_bias = first_of_heads.bias;
    // Copies, so that they start where vectors may.
    const auto copy = [&](const char* name) {
      return operand_of(inputs[name], setting).clone(at::MemoryFormat::Contiguous);
    };
    energy_out = copy("energy_out_weight");
    displacement_out = copy("displacement_out_weight");
    gate_out = copy("gate_out_weight");
    out_bias = second_biases(inputs);
    for (std::int64_t l = 0; l < setting.size("layers"); ++l) layers.push_back(recurrent_pack(inputs, l, hidden));
    if (!back) return;
    const std::int64_t trained = columns.child() + (gate ? 1 : 0);
    first_back = as_tiles(operand_of(first_layers(inputs, gate, 1).weight.narrow(0, 0, trained), setting).t());
    for (std::int64_t l = 0; l < setting.size("layers"); ++l) {
      const std::string number = "_" + std::to_string(l);
      layers_back.push_back({as_tiles(turned(inputs["weight_input" + number], stride)),
                             as_tiles(turned(inputs["weight_hidden" + number], stride))});
    }
  }

  std::vector<at::Tensor> all() const {
    std::vector<at::Tensor> packs = {neuron, first, first_bias, energy_out, displacement_out, gate_out, out_bias};
    for (const TilePack& layer : layers) packs.insert(packs.end(), {layer.weights, layer.biases});
    if (first_back.defined()) packs.push_back(first_back);
    for (const LayerBack& layer : layers_back) packs.insert(packs.end(), {layer.to_input, layer.to_state});
    return packs;
  }

  struct LayerBack {
    at::Tensor to_input, to_state;
  };
  at::Tensor neuron;
  carrier_heads::Columns columns;  // of the first layers
  at::Tensor first, first_bias, energy_out, displacement_out, gate_out, out_bias;
  std::vector<TilePack> layers;
  at::Tensor first_back;
  std::vector<LayerBack> layers_back;

 private:
  static at::Tensor as_tiles(const at::Tensor& matrix) { return in_tiles(matrix, 1, kTileColumns).contiguous(); }
};

}  // namespace twinbench::energy_flow::flow_forward

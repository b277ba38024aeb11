// Optimized energy_flow.simple_neuron on CUDA: one kernel forward, two backward, no ATen operator in run().
#include <ATen/ATen.h>

#include "kernels/common/simt.h"
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/simple_neuron/neuron.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

class CudaNeuron final : public Neuron<float> {
 public:
  CudaNeuron(const NamedTensors& inputs, const Setting& setting) : Neuron(inputs, setting) {
    if (setting.backward()) make_partial(backward_blocks(arguments_.flows));
    const Layout& layout = arguments_.layout;
    if (!arguments_.round || layout.hidden != kManyHidden || layout.outputs != kManyOutputs) return;
    tile_pack_ = packed_for_tiles();
    arguments_.tile_pack = data<float>(tile_pack_);
  }

  void run() override {
    if (setting_.backward())
      launch_backward(arguments_, stream());
    else
      launch_forward(arguments_, stream());
  }

 private:
  // The packed weights once more, as TilePack says. Matrices are rounded already: turning them into bf16 changes
  // nothing.
  at::Tensor packed_for_tiles() const {
    const auto picked = [&](int count, int (*source_of)(int)) {
      at::Tensor index = at::empty({count}, at::kLong);
      for (int i = 0; i < count; ++i) {
        const int source = source_of(i);
        index.data_ptr<std::int64_t>()[i] = source < 0 ? arguments_.layout.total() : source;
      }
      return at::constant_pad_nd(weights_, {0, 1}).index_select(0, index.to(weights_.device()));
    };
    const at::Tensor values = picked(TilePack::kValues, TilePack::source_of_value).to(at::kBFloat16);
    return at::cat({picked(TilePack::kFloats, TilePack::source_of_float), values.view(at::kFloat)});
  }

  at::Tensor tile_pack_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaNeuron>(inputs, setting);
}

}  // namespace twinbench::energy_flow::simple_neuron

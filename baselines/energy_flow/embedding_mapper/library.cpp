// energy_flow.embedding_mapper, library: LibTorch's own operators over all rows at once.
#include <ATen/ATen.h>

#include "baselines/common/tape.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

class Library final : public TapeBaseline {
 public:
  Library(const NamedTensors& inputs, const Setting& setting) : TapeBaseline(inputs, setting, Way::kLibrary) {
    make_leaves();
  }

 private:
  void compute() override {
    const at::Tensor first =
        layer_norm(at::gelu(linear(inputs_["embedding"], "weight_1", "bias_1")), "gain_1", "shift_1");
    const at::Tensor second = layer_norm(at::gelu(linear(first, "weight_2", "bias_2")), "gain_2", "shift_2");
    const at::Tensor bounded = at::tanh(linear(second, "weight_3", "bias_3"));
    const at::Tensor scaled = at::addcmul(inputs_["offset"], bounded, inputs_["scale"]);
    result("surface", scaled + inputs_["cell_offset"].reshape({1, -1}));
  }
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::embedding_mapper

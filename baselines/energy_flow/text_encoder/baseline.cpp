// Baseline of energy_flow.text_encoder: a text at a time, unpadded, every operator a launch, scores in memory.
#include <ATen/ATen.h>

#include "baselines/energy_flow/common/encoder_texts.h"
#include "src/common/forward_call.h"

namespace twinbench::energy_flow::text_encoder {
namespace {

class Baseline final : public EncoderTexts {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting) : EncoderTexts(inputs, setting) {}

 private:
  void compute() override {
    const std::int64_t batch = setting_.size("batch");
    std::vector<at::Tensor> surfaces;
    for (std::int64_t b = 0; b < batch; ++b) {
      announce_forward_call("energy_flow.text_encoder");
      const at::Tensor surface = encoded(b);
      if (backward_)
        root(surface, inputs_["grad_surface"].narrow(0, b, 1));
      else
        surfaces.push_back(surface);
    }
    if (backward_) return;
    results_.set("surface", batch > 0 ? at::cat(surfaces)
                                      : at::empty({0, setting_.size("cells")}, inputs_["embedding"].options()));
  }
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_encoder

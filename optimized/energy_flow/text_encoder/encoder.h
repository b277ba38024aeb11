// What both paths of energy_flow.text_encoder share: results, and a run of the pass.
#pragma once

#include <ATen/core/grad_mode.h>

#include "optimized/common/tensors.h"
#include "src/common/forward_call.h"
#include "src/component.h"

namespace twinbench::energy_flow::text_encoder {

// `Pass`: the encoder's pass on the path, made of inputs, setting, surface and gradients.
template <class Pass>
class Encoder final : public Runnable {
 public:
  Encoder(const NamedTensors& inputs, const Setting& setting)
      : backward_(setting.backward()),
        texts_(setting.size("batch")),
        results_(zero_results(forward_of(setting))),
        gradients_(backward_ ? zero_results(setting) : NamedTensors()),
        pass_(inputs, setting, results_["surface"], gradients_) {}

  void run() override {
    if (texts_ == 0) return;
    const at::NoGradGuard no_tape;
    announce_forward_call("energy_flow.text_encoder");
    pass_.forward();
    if (backward_) pass_.backward();
  }
  NamedTensors outputs() override { return backward_ ? gradients_ : results_; }

 private:
  const bool backward_;
  const std::int64_t texts_;
  const NamedTensors results_, gradients_;
  Pass pass_;
};

}  // namespace twinbench::energy_flow::text_encoder

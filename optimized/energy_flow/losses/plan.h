// The tensors of energy_flow.losses, the same on both paths.
#pragma once

#include "kernels/energy_flow/losses/arguments.h"
#include "optimized/common/tensors.h"
#include "optimized/energy_flow/common/word_overlap.h"
#include "src/energy_flow/common/decoder_share.h"

namespace twinbench::energy_flow::losses {

static_assert(kDecoderShare == kDecoderLossShare);

template <class Real>
class Plan : public Runnable {
 public:
  Plan(const NamedTensors& inputs, const Setting& setting)
      : weight_(setting.option("text_loss_weight")),
        overlap_(texts(inputs, "predicted", setting), texts(inputs, "wanted", setting)),
        inputs_(inputs),
        results_(zero_results(setting)) {
    const std::int64_t count = setting.size("rows") * setting.size("cells");
    const bool backward = setting.backward();
    const auto pair = [&](const std::string& surface, const std::string& target, std::int64_t values) {
      return SurfacePair<Real>{.surface = given<Real>(inputs_, surface),
                               .target = given<Real>(inputs_, target),
                               .gradient = backward ? data<Real>(results_["grad_" + surface]) : nullptr,
                               .count = values};
    };
    energy_ = pair("surface", "target", count);
    encoder_ = pair("encoded", "encoded_target", weight_ > 0 ? count : 0);  // without a weight it has not run
    if (backward) upstream_ = given<Real>(inputs_, "grad_total_loss");
    // With the gradients the losses are computed all the same, as the step needs them: they are no outputs there.
    const auto options = results_.begin()->second.options();
    const auto place = [&](const char* name) {
      losses_.set(name, backward ? at::zeros({1}, options) : results_[name]);
      return data<Real>(losses_[name]);
    };
    losses_.set("finite", backward ? at::zeros({1}, options.dtype(at::kLong)) : results_["finite"]);
    places_ = {.energy = place("energy_loss"),
               .encoder = place("encoder_loss"),
               .decoder = place("decoder_loss"),
               .text = place("text_loss"),
               .total = place("total_loss"),
               .finite = data<std::int64_t>(losses_["finite"])};
  }

  NamedTensors outputs() override { return results_; }
  const NamedTensors& losses() const { return losses_; }  // of the last run, in either pass

 protected:
  double weight_;
  WordOverlap overlap_;
  SurfacePair<Real> energy_, encoder_;
  const Real* upstream_ = nullptr;
  LossPlaces<Real> places_;

 private:
  static TextList texts(const NamedTensors& inputs, const std::string& name, const Setting& setting) {
    const TextList given(inputs, name);
    return setting.device.is_cpu() ? given : given.copied();
  }

  NamedTensors inputs_, results_, losses_;
};

}  // namespace twinbench::energy_flow::losses

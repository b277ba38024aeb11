// The losses of a micro-step (C23) in operators: what the baseline and LibTorch's own way share.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "baselines/common/tape.h"
#include "baselines/energy_flow/common/word_sets.h"
#include "src/energy_flow/common/decoder_share.h"

namespace twinbench::energy_flow {

class TapedLosses : public TapeBaseline {
 public:
  TapedLosses(const NamedTensors& inputs, const Setting& setting, Way way)
      : TapeBaseline(inputs, setting, way),
        predicted_(inputs, "predicted"),
        wanted_(inputs, "wanted"),
        weight_(setting.option("text_loss_weight")) {
    make_leaves(weight_ > 0 ? std::vector<std::string>{} : std::vector<std::string>{"encoded"});
  }

  // Of the host's own numbers tensors are made here; in the training loop they go to a log.
  NamedTensors outputs() override {
    NamedTensors values = TapeBaseline::outputs();
    if (backward_) return values;
    const auto place = inputs_["surface"].options();
    for (const char* name : {"energy_loss", "encoder_loss", "total_loss"})
      values.set(name, values.contains(name) ? values[name].reshape({1}) : at::zeros({1}, place));
    values.set("decoder_loss", at::full({1}, decoder_, place));
    values.set("text_loss", values["encoder_loss"] + kDecoderLossShare * decoder_);
    values.set("finite", values["total_loss"].isfinite().to(at::kLong));
    return values;
  }

 protected:
  virtual at::Tensor mean_square(const at::Tensor& surface, const at::Tensor& target) const = 0;
  // A loss is there; and all that there are, once more.
  virtual void computed(const at::Tensor&) {}
  virtual void log(const std::vector<at::Tensor>&) {}

 private:
  void compute() override {
    decoder_ = decoder_loss(predicted_, wanted_);
    if (inputs_["surface"].size(0) == 0) return;  // an empty micro-step
    const at::Tensor energy = mean_square(inputs_["surface"], inputs_["target"]);
    computed(energy);
    at::Tensor total = energy;
    std::vector<at::Tensor> losses = {energy};
    if (weight_ > 0) {  // else the encoder has not run
      losses.push_back(mean_square(inputs_["encoded"], inputs_["encoded_target"]));
      computed(losses.back());
      total = at::add(energy, at::add(losses.back(), kDecoderLossShare * decoder_), weight_);
      if (!backward_) results_.set("encoder_loss", losses.back());
    }
    computed(total);
    losses.push_back(total);
    log(losses);
    if (!backward_) results_.set("energy_loss", energy);
    result("total_loss", total.view({1}));
  }

  TextList predicted_, wanted_;
  double weight_;
  double decoder_ = 0;
};

}  // namespace twinbench::energy_flow

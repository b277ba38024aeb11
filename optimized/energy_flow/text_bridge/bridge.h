// What both paths of energy_flow.text_bridge share: every part once, over the whole batch, and texts of the samples
// that are due alone, decoded from the surfaces where they lie.
#pragma once

#include <memory>

#include "src/energy_flow/common/bridge_parts.h"

namespace twinbench::energy_flow::text_bridge {

class Bridge final : public Runnable {
 public:
  Bridge(const NamedTensors& inputs, const Setting& s, Device path) : s_(s), shown_(shown_texts(s)) {
    const std::int64_t samples = s.size("samples");
    const auto made = [&](const BridgePart& part, std::int64_t count, const NamedTensors& more = {}) {
      return part.make(Variant::kOptimized, path, inputs, s, 0, count, more);
    };
    flows_ = made(kBridgeFlows, samples);
    surface_ = flows_->outputs()["surface"];
    if (s.on("text_bridge") && samples > 0) encoder_ = made(kBridgeEncoder, samples);
    if (shown_ > 0) decoder_ = made(kBridgeDecoder, shown_, {{"surface", surface_.narrow(0, 0, shown_)}});
  }

  void run() override {
    flows_->run();
    if (encoder_) encoder_->run();
    if (decoder_) decoder_->run();
  }

  NamedTensors outputs() override {
    NamedTensors results = no_texts(s_);
    for (const auto& [name, value] : flows_->outputs()) results.set(name, value);
    if (!results["surface"].is_alias_of(surface_))
      throw Error(ErrorKind::kInternal, "surface", "another tensor in every run",
                  "the optimized flow_forward must write where it wrote before: the decoder reads there");
    if (encoder_) results.set("encoded", encoder_->outputs()["surface"]);
    tell_work(results, kFlowForwards, surface_.size(0) > 0), tell_work(results, kFlowSamples, surface_.size(0));
    tell_work(results, kEncodes, encoder_ != nullptr), tell_work(results, kDecodes, decoder_ != nullptr);
    if (!decoder_) return results;
    const NamedTensors texts = decoder_->outputs();
    results["decoded"].narrow(0, 0, shown_).copy_(surface_.narrow(0, 0, shown_));
    results["work"].select(0, kDecodedTokens).copy_(texts["length"].sum());
    show_texts(results, texts, 0);
    return results;
  }

 private:
  const Setting s_;
  const std::int64_t shown_;
  std::unique_ptr<Runnable> flows_, encoder_, decoder_;
  at::Tensor surface_;  // of the flows, [samples, cells]
};

}  // namespace twinbench::energy_flow::text_bridge

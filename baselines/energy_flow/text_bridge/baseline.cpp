// Baseline of energy_flow.text_bridge: a text at a time is encoded; then, for each sample in every micro-step, all of
// its flows go forward again by themselves, and that one surface is decoded, whoever looks at its text.
#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "src/energy_flow/common/bridge_parts.h"

namespace twinbench::energy_flow::text_bridge {
namespace {

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& s)
      : s_(s), samples_(s.size("samples")), flows_(made(kBridgeFlows, inputs, 0, samples_)) {
    row_ = at::zeros({1, s.size("cells")}, inputs["embedding"].options());
    if (!s.on("text_bridge") || samples_ == 0) return;
    encoder_ = made(kBridgeEncoder, inputs, 0, samples_);
    decoder_ = made(kBridgeDecoder, inputs, 0, 1, {{"surface", row_}});
    for (std::int64_t b = 0; s.on("repeated_forward") && b < samples_; ++b)
      alone_.push_back(made(kBridgeFlows, inputs, b, 1));
  }

  void run() override {
    flows_->run();
    if (!encoder_) return;
    encoder_->run();
    decoded_.clear(), texts_.clear();
    for (std::int64_t b = 0; b < samples_; ++b) {
      decoded_.push_back(surface_of(b));
      row_.copy_(decoded_.back());
      decoder_->run();
      texts_.push_back(decoder_->outputs());
    }
  }

  NamedTensors outputs() override {
    NamedTensors results = no_texts(s_);
    for (const auto& [name, value] : flows_->outputs()) results.set(name, value);
    if (encoder_) results.set("encoded", encoder_->outputs()["surface"]);
    tell_all_work(results);
    for (std::int64_t b = 0; b < shown_texts(s_); ++b) {
      const auto row = static_cast<std::size_t>(b);
      results["decoded"].narrow(0, b, 1).copy_(decoded_[row]);
      show_texts(results, texts_[row], b);
    }
    return results;
  }

 private:
  std::unique_ptr<Runnable> made(const BridgePart& part, const NamedTensors& inputs, std::int64_t first,
                                 std::int64_t count, const NamedTensors& more = {}) const {
    return part.make(Variant::kBaseline, s_.device, inputs, s_, first, count, more);
  }

  // [1, cells]: of a forward pass of its own, or what the batch's has found.
  at::Tensor surface_of(std::int64_t b) {
    if (alone_.empty()) return flows_->outputs()["surface"].narrow(0, b, 1);
    Runnable& alone = *alone_[static_cast<std::size_t>(b)];
    alone.run();
    return alone.outputs()["surface"];
  }

  void tell_all_work(const NamedTensors& results) const {
    const auto alone = static_cast<std::int64_t>(alone_.size());
    tell_work(results, kFlowForwards, alone + (samples_ > 0 ? 1 : 0));
    tell_work(results, kFlowSamples, alone + samples_);
    for (const BridgeWork column : {kEncodes, kDecodes}) tell_work(results, column, encoder_ ? samples_ : 0);
    for (const NamedTensors& text : texts_) results["work"].select(0, kDecodedTokens).add_(text["length"].sum());
  }

  const Setting s_;
  const std::int64_t samples_;
  const std::unique_ptr<Runnable> flows_;
  std::unique_ptr<Runnable> encoder_, decoder_;
  std::vector<std::unique_ptr<Runnable>> alone_;  // each sample's flows by themselves
  at::Tensor row_;                                // [1, cells]: what the decoder reads
  std::vector<at::Tensor> decoded_;               // by sample
  std::vector<NamedTensors> texts_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_bridge

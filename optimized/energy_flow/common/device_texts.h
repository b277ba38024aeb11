// The texts of a window on the CUDA path: staged, encoded and back in one pass a micro-step; where a window is due,
// decoded and compared on the device. The host reads nothing.
#pragma once

#include <ATen/ops/zeros.h>

#include "kernels/energy_flow/common/surface_losses.h"
#include "kernels/energy_flow/common/window_texts_arguments.h"
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/common/cuda_text_encoder.h"
#include "optimized/energy_flow/common/window_texts.h"
#include "src/common/forward_call.h"

namespace twinbench::energy_flow::train_step {
inline namespace TWINBENCH_FORM {

class DeviceTexts {
 public:
  // As TextParts has them. goal: what the encoder's surfaces should be, [micro_batch, cells].
  DeviceTexts(const NamedTensors& parameters, const Setting& s, const at::Tensor& gradients, const at::Tensor& surface,
              const at::Tensor& goal)
      : inputs_(parameters),
        texts_(parameters, s, s.device.takes_cuda_path() ? s.device : Device::simt(), gradients, surface),
        goal_(goal),
        weight_(s.option("text_loss_weight")) {
    if (texts_.encodes_texts()) {
      stage_ = {.batch = texts_.token().size(0),
                .most = texts_.token().size(1),
                .cells = surface.size(1),
                .to_token = data<std::int32_t>(texts_.token()),
                .to_length = data<std::int32_t>(texts_.length()),
                .to_key = data<std::int64_t>(texts_.key()),
                .gradient = data<float>(texts_.grad_encoded())};
      token_ = given<std::int32_t>(inputs_, "token"), length_ = given<std::int32_t>(inputs_, "length");
      key_ = given<std::int64_t>(inputs_, "sample_key");
    }
    if (texts_.shown() == 0) return;
    const NamedTensors predicted = texts_.decoder().outputs();
    kept_ = {predicted["text"], predicted["text_length"], at::zeros({1}, surface.options().dtype(at::kDouble))};
    decoded_ = {.predicted = kept_[0].const_data_ptr<std::uint8_t>(),
                .predicted_size = kept_[1].const_data_ptr<std::int32_t>(),
                .texts = texts_.shown(),
                .room = kept_[0].size(1),
                .wanted = given<std::uint8_t>(inputs_, "wanted_bytes"),
                .wanted_offsets = given<std::int64_t>(inputs_, "wanted_offsets"),
                .loss = data<double>(kept_[2])};
  }

  bool encodes_texts() const { return texts_.encodes_texts(); }
  void refresh() { texts_.refresh(); }
  void begin(std::int64_t attempt) { texts_.begin(attempt); }
  const float* encoded() const { return data<float>(texts_.encoded()); }

  // Rows from number `row` on, and in a micro-step that is due the surfaces that the flows have left; what the losses
  // take of them.
  void forward(std::int64_t micro_step, std::int64_t row, std::int64_t rows, SurfaceLossArguments& losses) {
    losses.weight = weight_;
    if (texts_.encodes_texts()) {
      stage_.token = token_ + row * stage_.most, stage_.length = length_ + row, stage_.key = key_ + row;
      stage_.rows = rows;
      launch_stage_texts(stage_, stream());
      announce_forward_call("energy_flow.text_encoder");
      texts_.encoder().forward();
      losses.encoder = {.surface = encoded(),
                        .target = data<float>(goal_),
                        .gradient = data<float>(texts_.grad_encoded()),
                        .count = rows * stage_.cells};
    }
    losses.decoded = nullptr;
    if (!texts_.decodes_in(micro_step)) return;
    texts_.decoder().run();
    launch_decoded_loss(decoded_, stream());
    losses.decoded = decoded_.loss;
  }
  void backward() {
    if (texts_.encodes_texts()) texts_.encoder().backward();
  }

 private:
  NamedTensors inputs_;
  TextParts<CudaTextEncoder> texts_;
  const at::Tensor goal_;
  const double weight_;
  const std::int32_t *token_ = nullptr, *length_ = nullptr;
  const std::int64_t* key_ = nullptr;
  StageTextsArguments stage_;
  std::vector<at::Tensor> kept_;  // what the arguments point into
  DecodedLossArguments decoded_;
};

}  // namespace TWINBENCH_FORM
}  // namespace twinbench::energy_flow::train_step

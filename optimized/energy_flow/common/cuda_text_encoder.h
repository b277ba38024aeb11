// The text encoder's pass on the CUDA path (C18), as its component and the training step take it: library products over
// the tokens of all texts, kernels between them.
#pragma once

#include <ATen/ops/zeros.h>

#include "kernels/energy_flow/common/text_encoder_launch.h"
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/common/text_encoder_pass.h"

namespace twinbench::energy_flow {
inline namespace TWINBENCH_FORM {

class CudaTextEncoder final : public TextEncoderPass<float> {
 public:
  CudaTextEncoder(const NamedTensors& inputs, const Setting& setting, const at::Tensor& surface,
                  const NamedTensors& gradients)
      : TextEncoderPass(inputs, setting, at::kBFloat16, surface, gradients),
        order_(integers(backward_ ? tokens_.capacity() : 0, setting)),
        end_(integers(backward_ ? vocabulary_ : 0, setting)) {
    refresh();
  }

 private:
  static at::Tensor integers(std::int64_t count, const Setting& setting) {
    return at::zeros({count}, at::TensorOptions(at::kInt).device(setting.device));
  }
  void embed(const EmbedArguments<float>& step) override { text_encoder::launch_embed(step, stream()); }
  void elements(const ElementArguments<float>& step) override { text_encoder::launch_elements(step, stream()); }
  void norm(const ResidualNorm<float>& step) override { text_encoder::launch_norm(step, stream()); }
  void norm_back(const ResidualNorm<float>& step) override { text_encoder::launch_norm_back(step, stream()); }
  void attend(const Attention<float>& attention) override { text_encoder::launch_attend(attention, stream()); }
  void attend_back(const Attention<float>& attention) override {
    text_encoder::launch_attend_back(attention, stream());
  }
  void mean(const MeanArguments<float>& step) override { text_encoder::launch_mean(step, stream()); }
  void mean_back(const MeanArguments<float>& step) override { text_encoder::launch_mean_back(step, stream()); }
  void column_sums(const at::Tensor& rows, const at::Tensor& sums) override {
    kernels::launch_column_sums({.rows = data<float>(rows),
                                 .sums = data<float>(sums),
                                 .count = rows.size(0),
                                 .columns = static_cast<std::int32_t>(rows.size(1)),
                                 .stride = static_cast<std::int32_t>(rows.size(1))},
                                stream());
  }
  void table_gradient(const TableGradient<float>& table) override {
    TableGradient<float> sorted = table;
    sorted.order = data<std::int32_t>(order_);
    sorted.end = data<std::int32_t>(end_);
    text_encoder::launch_table_gradient(sorted, stream());
  }
  void place_gradient(const TableGradient<float>& table) override {
    text_encoder::launch_place_gradient(table, stream());
  }
  void clear_padding(const at::Tensor& rows) override {
    text_encoder::launch_clear(
        {.rows = rows.size(0), .width = rows.size(1), .tokens = tokens_.rows(), .values = data<float>(rows)}, stream());
  }
  void round(const Operand& operand) override {
    if (!operand.rounds()) return;
    kernels::launch_round_to_bf16({.values = data<float>(operand.exact),
                                   .rounded = data<std::uint16_t>(operand.factor),
                                   .count = operand.exact.numel()},
                                  stream());
  }
  void finish(const Operand&) override {}  // kernels store both

  const at::Tensor order_, end_;  // the tokens by their ids
};

}  // namespace TWINBENCH_FORM
}  // namespace twinbench::energy_flow

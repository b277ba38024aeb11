// Optimized energy_flow.text_encoder on CUDA: library products over the tokens of all texts, kernels between them.
#include <ATen/ops/zeros.h>

#include "kernels/energy_flow/text_encoder/arguments.h"
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/common/text_encoder_pass.h"
#include "optimized/energy_flow/text_encoder/encoder.h"

namespace twinbench::energy_flow::text_encoder {
namespace {

class CudaPass final : public TextEncoderPass<float> {
 public:
  CudaPass(const NamedTensors& inputs, const Setting& setting, const at::Tensor& surface, const NamedTensors& gradients)
      : TextEncoderPass(inputs, setting, at::kBFloat16, surface, gradients),
        order_(integers(backward_ ? tokens_.capacity() : 0, setting)),
        end_(integers(backward_ ? vocabulary_ : 0, setting)) {
    refresh();
  }

 private:
  static at::Tensor integers(std::int64_t count, const Setting& setting) {
    return at::zeros({count}, at::TensorOptions(at::kInt).device(setting.device));
  }
  void embed(const EmbedArguments<float>& step) override { launch_embed(step, stream()); }
  void elements(const ElementArguments<float>& step) override { launch_elements(step, stream()); }
  void norm(const ResidualNorm<float>& step) override { launch_norm(step, stream()); }
  void norm_back(const ResidualNorm<float>& step) override { launch_norm_back(step, stream()); }
  void attend(const Attention<float>& attention) override { launch_attend(attention, stream()); }
  void attend_back(const Attention<float>& attention) override { launch_attend_back(attention, stream()); }
  void mean(const MeanArguments<float>& step) override { launch_mean(step, stream()); }
  void mean_back(const MeanArguments<float>& step) override { launch_mean_back(step, stream()); }
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
    launch_table_gradient(sorted, stream());
  }
  void place_gradient(const TableGradient<float>& table) override { launch_place_gradient(table, stream()); }
  void clear_padding(const at::Tensor& rows) override {
    launch_clear({.rows = rows.size(0), .width = rows.size(1), .tokens = tokens_.rows(), .values = data<float>(rows)},
                 stream());
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

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<Encoder<CudaPass>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_encoder

// The text encoder's pass on the CPU: the library's products, vector loops and fused attention between them.
#pragma once

#include "optimized/energy_flow/common/attention_loops.h"
#include "optimized/energy_flow/common/text_encoder_pass.h"

namespace twinbench::energy_flow {

template <class Real>
class CpuTextEncoder final : public TextEncoderPass<Real> {
 public:
  CpuTextEncoder(const NamedTensors& inputs, const Setting& setting, const at::Tensor& surface,
                 const NamedTensors& gradients);

 private:
  using typename TextEncoderPass<Real>::Operand;
  void embed(const EmbedArguments<Real>& step) override;
  void elements(const ElementArguments<Real>& step) override;
  void norm(const ResidualNorm<Real>& step) override;
  void norm_back(const ResidualNorm<Real>& step) override;
  void attend(const Attention<Real>& attention) override { attention_.forward(attention); }
  void attend_back(const Attention<Real>& attention) override { attention_.backward(attention); }
  void mean(const MeanArguments<Real>& step) override;
  void mean_back(const MeanArguments<Real>& step) override;
  void column_sums(const at::Tensor& rows, const at::Tensor& sums) override;
  void table_gradient(const TableGradient<Real>& table) override;
  void place_gradient(const TableGradient<Real>& table) override { table_gradient(table); }
  void clear_padding(const at::Tensor&) override {}  // there is none
  void round(const Operand& operand) override;
  void finish(const Operand& operand) override { round(operand); }

  const AttentionLoops<Real> attention_;
};

}  // namespace twinbench::energy_flow

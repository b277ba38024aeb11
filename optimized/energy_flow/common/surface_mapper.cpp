// The mapper's three layers on the CPU.
#include "optimized/energy_flow/common/surface_mapper.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <string>

#include "kernels/energy_flow/common/surface_cell.h"
#include "optimized/common/activation_rows.h"
#include "optimized/common/packing.h"
#include "optimized/common/row_product.h"
#include "optimized/common/rows.h"
#include "optimized/common/tensors.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

TWINBENCH_CPU_CLONES void surface_row(const float* __restrict product, const float* __restrict bias,
                                      const float* __restrict cell_offset, float scale, float offset,
                                      std::int64_t cells, float* __restrict surface) {
  for (std::int64_t i = 0; i < cells; ++i)
    surface[i] = embedding_mapper::cell_energy(kernels::tanh(product[i] + bias[i]), scale, offset, cell_offset[i]);
}

}  // namespace

SurfaceMapper::SurfaceMapper(const NamedTensors& inputs, const Setting& setting)
    : samples_(setting.size("samples")),
      round_(rounds_operands(setting)),
      embedding_(inputs["embedding"].contiguous()),
      operand_(round_ ? at::empty_like(embedding_) : embedding_) {
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i + 1);
    weights_[i] = operand_of(inputs["mapper_weight_" + number], setting);
    products_[i] = at::empty({samples_, weights_[i].size(0)}, embedding_.options());
    if (i == 2) break;
    biases_[i] = inputs["mapper_bias_" + number].contiguous();
    gains_[i] = inputs["mapper_gain_" + number].contiguous();
    shifts_[i] = inputs["mapper_shift_" + number].contiguous();
    hidden_[i] = at::empty_like(products_[i]);
  }
  parameters_ = {inputs["mapper_bias_3"].contiguous(), at::cat({inputs["mapper_scale"], inputs["mapper_offset"]}),
                 inputs["mapper_cell_offset"].contiguous()};
  surface_ = at::empty_like(products_[2]);
}

void SurfaceMapper::run() const {
  if (samples_ == 0) return;
  if (round_) round_all<float>(embedding_, operand_);
  for (std::size_t i = 0; i < 3; ++i) {
    multiply_rows_transposed<float>(i == 0 ? operand_ : hidden_[i - 1], weights_[i], products_[i]);
    if (i == 2) break;
    activate_rows<float>({.rows = samples_,
                          .width = products_[i].size(1),
                          .bias = data<float>(biases_[i]),
                          .gain = data<float>(gains_[i]),
                          .shift = data<float>(shifts_[i]),
                          .product = data<float>(products_[i]),
                          .hidden = {.plain = data<float>(hidden_[i])}},
                         0, samples_, round_);
  }
  const std::int64_t cells = surface_.size(1);
  const float* const affine = data<float>(parameters_[1]);
  for (std::int64_t b = 0; b < samples_; ++b)
    surface_row(data<float>(products_[2]) + b * cells, data<float>(parameters_[0]), data<float>(parameters_[2]),
                affine[0], affine[1], cells, data<float>(surface_) + b * cells);
}

}  // namespace twinbench::energy_flow::flow_forward

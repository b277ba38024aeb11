// Embeddings to surfaces (C04): products that stream each weight once, vector loops between them; all buffers are made
// by the constructor.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "kernels/common/arguments.h"
#include "src/named_tensors.h"
#include "src/setting.h"

namespace twinbench::energy_flow::flow_forward {

class SurfaceMapper {
 public:
  SurfaceMapper(const NamedTensors& inputs, const Setting& setting);
  void run() const;
  const at::Tensor& surface() const { return surface_; }  // [samples, cells]

 private:
  const std::int64_t samples_;
  const bool round_;
  at::Tensor embedding_, operand_;  // as given; as the first product takes it
  std::array<at::Tensor, 3> weights_, products_,
      parameters_;  // parameters_: last bias, scale and offset, cells' offsets
  std::array<at::Tensor, 2> biases_, gains_, shifts_, hidden_;
  at::Tensor surface_;
};

}  // namespace twinbench::energy_flow::flow_forward

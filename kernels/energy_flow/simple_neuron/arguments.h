// Arguments and launchers of the simple neuron's CUDA kernels; the CPU path fills the same struct, in double too.
#pragma once

#include "kernels/common/arguments.h"
#include "kernels/energy_flow/simple_neuron/math.h"

namespace twinbench::energy_flow::simple_neuron {

template <class Real>
struct Arguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Layout layout = {};
  bool round = false;  // bf16 mode; the packed matrices are already rounded
  std::int64_t flows = 0;
  const Real* weights = nullptr;                          // [layout.total()], packed
  const Real* tile_pack = nullptr;                        // [TilePack::kTotal]; null: no tiles
  kernels::StridedRows<Real> position = {}, energy = {};  // [flows, 3], [flows, 1]
  Real* features = nullptr;                               // [flows, outputs], forward
  // Backward.
  kernels::StridedRows<Real> grad_features = {};  // [flows, outputs]
  Real* grad_position = nullptr;                  // [flows, 3]
  Real* grad_energy = nullptr;                    // [flows, 1]
  Real* partial = nullptr;                        // scratch; on CUDA [backward_blocks(flows), layout.padded()]
  Real* grad_weights = nullptr;                   // [layout.total()], packed
};

// One kernel. Throws CudaError if the launch is refused. No flows: nothing is launched.
void launch_forward(const Arguments<float>& arguments, kernels::Stream stream);
// Two kernels: gradients per block, then their sum. With no flows the sum alone runs and writes zeros.
void launch_backward(const Arguments<float>& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::simple_neuron

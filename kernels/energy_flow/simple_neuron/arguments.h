// Arguments and launchers of the simple neuron's CUDA kernels. No CUDA headers, so that optimized/ stays host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/stream.h"
#include "kernels/energy_flow/simple_neuron/math.h"

namespace twinbench::energy_flow::simple_neuron {

using namespace kernels;  // NOLINT: the shared layer

// A [flows, columns] matrix of any strides (in elements).
struct StridedRows {
  const float* data = nullptr;
  std::int64_t row_stride = 0, column_stride = 0;
};

struct SimpleNeuronArguments {
  SimpleNeuronLayout layout;
  bool round = false;              // bf16 mode; the packed matrices are already rounded
  std::int64_t flows = 0;
  const float* weights = nullptr;  // [layout.total()], packed
  StridedRows position, energy;    // [flows, 3], [flows, 1]
  float* features = nullptr;       // [flows, outputs], forward
  // Backward.
  StridedRows grad_features;       // [flows, outputs]
  float* grad_position = nullptr;  // [flows, 3]
  float* grad_energy = nullptr;    // [flows, 1]
  float* partial = nullptr;        // [simple_neuron_backward_blocks(flows), layout.total()], scratch
  float* grad_weights = nullptr;   // [layout.total()], packed
};

// Blocks that share the sums of the weight gradients: a function of the flows alone, so that the sums are reproducible.
std::int64_t simple_neuron_backward_blocks(std::int64_t flows);

// Dynamic shared memory in bytes; a launch needs at most simt::kMaxSharedBytes.
std::int64_t simple_neuron_forward_shared(const SimpleNeuronLayout& layout);
std::int64_t simple_neuron_backward_shared(const SimpleNeuronLayout& layout);

// One kernel. Throws CudaError if the launch is refused. No flows: nothing is launched.
void launch_simple_neuron_forward(const SimpleNeuronArguments& arguments, Stream stream);
// Two kernels: gradients per block, then their sum. With no flows the sum alone runs and writes zeros.
void launch_simple_neuron_backward(const SimpleNeuronArguments& arguments, Stream stream);

}  // namespace twinbench::energy_flow::simple_neuron

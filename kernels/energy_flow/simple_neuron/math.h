// Index map and operand rounding of energy_flow.simple_neuron (C06), shared by host and device; the rest of its arithmetic
// is kernels/common (GELU, layer normalisation).
#pragma once

#include <cstdint>

#include "kernels/common/float_bits.h"

namespace twinbench::energy_flow::simple_neuron {

using namespace kernels;  // NOLINT: the shared layer

// Where each weight lies in one packed array, matrices transposed to [in][out]. Gradients use the same layout.
struct SimpleNeuronLayout {
  static constexpr int kCoordinates = 3, kState = 4;  // x, y, z; and the encoded coordinates with the energy
  int hidden = 0, outputs = 0;

  TWINBENCH_HOST_DEVICE int coordinate_weight() const { return 0; }
  TWINBENCH_HOST_DEVICE int coordinate_bias() const { return 9; }
  TWINBENCH_HOST_DEVICE int weight_1() const { return 12; }
  TWINBENCH_HOST_DEVICE int bias_1() const { return weight_1() + kState * hidden; }
  TWINBENCH_HOST_DEVICE int gain_1() const { return bias_1() + hidden; }
  TWINBENCH_HOST_DEVICE int shift_1() const { return gain_1() + hidden; }
  TWINBENCH_HOST_DEVICE int weight_2() const { return shift_1() + hidden; }
  TWINBENCH_HOST_DEVICE int bias_2() const { return weight_2() + hidden * hidden; }
  TWINBENCH_HOST_DEVICE int gain_2() const { return bias_2() + hidden; }
  TWINBENCH_HOST_DEVICE int shift_2() const { return gain_2() + hidden; }
  TWINBENCH_HOST_DEVICE int weight_3() const { return shift_2() + hidden; }
  TWINBENCH_HOST_DEVICE int bias_3() const { return weight_3() + hidden * outputs; }
  TWINBENCH_HOST_DEVICE int total() const { return bias_3() + outputs; }
};

constexpr double kLayerNormEpsilon = 1e-5;

// An operand of a matrix product: rounded to bf16 in that mode.
TWINBENCH_HOST_DEVICE float operand(float x, bool round) { return round ? round_to_bf16(x) : x; }

}  // namespace twinbench::energy_flow::simple_neuron

// Where the simple neuron's packed weights lie (C06), shared by host and device. In the namespace of the component that
// specifies it; the whole forward takes it too.
#pragma once

#include "src/common/host_device.h"

namespace twinbench::energy_flow::simple_neuron {

// Where each weight lies in one packed array, matrices transposed to [in][out]. Gradients use the same layout.
// Hidden layer 0 or 1 is weight, bias, gain, shift, one after the other.
struct Layout {
  static constexpr int kState = 4;  // the encoded coordinates and the energy
  int hidden = 0, outputs = 0;

  TWINBENCH_HOST_DEVICE int coordinate_weight() const { return 0; }
  TWINBENCH_HOST_DEVICE int coordinate_bias() const { return 9; }
  TWINBENCH_HOST_DEVICE int inner(int layer) const { return layer == 0 ? kState : hidden; }
  TWINBENCH_HOST_DEVICE int weight(int layer) const { return layer == 0 ? 12 : 12 + (kState + 3) * hidden; }
  TWINBENCH_HOST_DEVICE int bias(int layer) const { return weight(layer) + inner(layer) * hidden; }
  TWINBENCH_HOST_DEVICE int gain(int layer) const { return bias(layer) + hidden; }
  TWINBENCH_HOST_DEVICE int shift(int layer) const { return gain(layer) + hidden; }
  TWINBENCH_HOST_DEVICE int weight_out() const { return shift(1) + hidden; }
  TWINBENCH_HOST_DEVICE int bias_out() const { return weight_out() + hidden * outputs; }
  TWINBENCH_HOST_DEVICE int total() const { return bias_out() + outputs; }
  TWINBENCH_HOST_DEVICE int padded() const { return (total() + 7) / 8 * 8; }  // whole 32-byte sectors
};

}  // namespace twinbench::energy_flow::simple_neuron

// Back through the neuron, four rows a warp, and to the adjoints of each row's flow before its step.
#pragma once

#include "kernels/energy_flow/common/gru.h"
#include "kernels/energy_flow/common/movement.h"
#include "kernels/energy_flow/common/neuron_back_kernel.h"
#include "kernels/energy_flow/flow_backward/heads_kernel.h"

namespace twinbench::energy_flow::flow_backward {

// A step's rows as the neuron's warps ask for them. An energy that is no finite number is a zero here: what the guard
// stops must not come back as zero times NaN.
struct TapedFlows {
  struct Position {
    const StepRows& of;
    TWINBENCH_HOST_DEVICE float at(std::int64_t row, int axis) const {
      return (axis == 0 ? of.x : axis == 1 ? of.y : of.z)[row];
    }
  };
  struct Energy {
    const StepRows& of;
    TWINBENCH_HOST_DEVICE float at(std::int64_t row, int) const {
      const float energy = of.energy[row];
      return flow_movement::is_finite(energy) ? energy : 0.0f;
    }
  };
  simple_neuron::Layout layout;
  bool round;
  std::int64_t flows;
  const float* weights;
  Position position;
  Energy energy;
  float* partial;
  const NeuronBackArguments& a;
};

struct TapedGradients {
  template <class Block, class Warp, class Values>
  static TWINBENCH_DEVICE void load_features(Block& block, Warp& warp, const simple_neuron::Stage& at, Values) {
    const NeuronBackArguments& a = warp.a.a;
    for (int c = simt::lane(block); c < a.layout.outputs; c += simt::kWarpSize) {
      simple_neuron::FourFlows value = simple_neuron::four_times(warp.weights[a.layout.bias_out() + c]);
      simple_neuron::accumulate(a.layout.hidden, warp.weights + a.layout.weight_out() + c, a.layout.outputs,
                                warp.rows + at.hidden(1), false, value);
      TWINBENCH_UNROLL
      for (int i = 0; i < simple_neuron::kFlowsPerWarp; ++i)
        value.of[i] = warp.first + i < warp.a.flows ? of_feature(a, warp.first + i, c, value.of[i]) : 0.0f;
      warp.rows[at.features() + c] = value;
    }
    block.warp_barrier();
  }

  static TWINBENCH_DEVICE float of_feature(const NeuronBackArguments& a, std::int64_t row, int channel, float value) {
    const float gradient = a.grad_input[row * a.input_stride + channel];
    return flow_movement::is_finite(a.tape.energy[row])
               ? kernels::guard_gradient(value, energy_carrier::kGuardLimit, gradient)
               : 0.0f;
  }

  static TWINBENCH_DEVICE void store_energy(const TapedFlows& flows, std::int64_t row, float gradient) {
    const NeuronBackArguments& a = flows.a;
    a.adjoints.energy[a.tape.slot[row]] =
        gradient + kernels::guard_gradient(a.tape.energy[row], energy_carrier::kGuardLimit,
                                           a.grad_input[row * a.input_stride + a.layout.outputs]);
  }

  // Through the move too, and from the children that were born where the flow was.
  static TWINBENCH_DEVICE void store_position(const TapedFlows& flows, std::int64_t first, int element,
                                              float gradient) {
    const NeuronBackArguments& a = flows.a;
    const std::int64_t row = first + element / 3;
    const int axis = element % 3;
    float* const adjoint = axis == 0 ? a.adjoints.x : axis == 1 ? a.adjoints.y : a.adjoints.z;
    const float slope = axis == 0 ? a.tape.slope_x[row] : axis == 1 ? a.tape.slope_y[row] : 1.0f;
    const std::int32_t slot = a.tape.slot[row];
    adjoint[slot] = slope * adjoint[slot] + (gradient + over_children(a.tape, row, adjoint));
  }

  static TWINBENCH_DEVICE float sum_before(const TapedFlows& flows, std::int64_t element) {
    return flows.a.steps.first ? 0.0f : flows.partial[element];
  }
};

// Grid: simple_neuron::backward_blocks(rows that there can be).
struct NeuronBack : simple_neuron::WalkBack<TapedGradients> {
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const NeuronBackArguments& a) const {
    const std::int64_t rows = *a.tape.total;
    if (std::int64_t{block.index().x} * simple_neuron::kFlowsPerBlock >= rows && !a.steps.first) return;
    walk(block, TapedFlows{a.layout, a.round, rows, a.weights, {a.tape}, {a.tape}, a.partial, a});
  }
};

}  // namespace twinbench::energy_flow::flow_backward

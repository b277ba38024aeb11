// Arguments and launchers of the carrier heads' kernels: everything but the joined first layer's product, which stays
// with cuBLAS. The CPU path fills the same structs, in double too.
#pragma once

#include "kernels/common/arguments.h"
#include "kernels/energy_flow/carrier_heads/math.h"

namespace twinbench::energy_flow::carrier_heads {

// Columns of the joined first layer: [energy | displacement | child (1) | padding | gate | padding]; child and gate in
// gate mode only. The padding after the child keeps the gate's columns on 32-byte sectors where the heads' are.
struct Columns {
  std::int32_t energy_width = 0, head_width = 0;
  std::int32_t all = 0;  // length of a row, padding included

  TWINBENCH_HOST_DEVICE std::int32_t displacement() const { return energy_width; }
  TWINBENCH_HOST_DEVICE std::int32_t child() const { return energy_width + head_width; }
  static constexpr std::int32_t kChildColumns = 8;  // padding included
  TWINBENCH_HOST_DEVICE std::int32_t gate() const { return child() + kChildColumns; }
};

template <class Real>
struct ForwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Rule<Real> rule = {};
  Columns columns = {};
  std::int64_t flows = 0;
  bool round = false;                             // activations are rounded to bf16 (the weights are rounded already)
  const Real* sums = nullptr;                     // [flows, all], the product without bias
  const Real* bias = nullptr;                     // [all]
  const Real* energy_out_weight = nullptr;        // [energy_width]
  const Real* displacement_out_weight = nullptr;  // [3, head_width]
  const Real* gate_out_weight = nullptr;          // [head_width]
  const Real* out_bias = nullptr;                 // [5]: energy, displacement x y z, gate
  const Real* position = nullptr;                 // [flows, 3]
  const std::int64_t* sample_key = nullptr;       // [flows]
  const std::int64_t* local_id = nullptr;         // [flows]
  Real* energy = nullptr;                         // [flows]
  Real* displacement = nullptr;                   // [flows, 3]
  Real* delta = nullptr;                          // [flows, 3]
  Real* raw = nullptr;                            // [flows, 3]
  Real* spawn_measure = nullptr;                  // [flows]
  std::int32_t* spawn_count = nullptr;            // [flows]
  Real* child_energy = nullptr;                   // [flows]
  Real* activated = nullptr;                      // [flows, all], for the backward pass; or null
  Sums<Real>* second_sums = nullptr;              // [flows], for the backward pass; or null
};

// What both paths store of one flow.
template <class Real>
TWINBENCH_HOST_DEVICE void store_results(const ForwardArguments<Real>& a, std::int64_t flow, const Sums<Real>& sums,
                                         const Results<Real>& result) {
  a.energy[flow] = result.energy;
  sums.displacement.store(a.displacement, flow);
  result.delta.store(a.delta, flow);
  result.raw.store(a.raw, flow);
  a.spawn_measure[flow] = result.spawn_measure;
  a.spawn_count[flow] = result.spawn_count;
  a.child_energy[flow] = result.child_energy;
}

constexpr int kThreads = 256;
constexpr int kFlowsPerBlock = 32;  // a lane each for the scalar rules

void launch_forward(const ForwardArguments<float>& arguments, kernels::Stream stream);

template <class Real>
struct BackwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Rule<Real> rule = {};
  Columns columns = {};
  std::int64_t flows = 0;
  const Real* bias = nullptr;
  const Real* energy_out_weight = nullptr;
  const Real* displacement_out_weight = nullptr;
  const Sums<Real>* second_sums = nullptr;
  const std::int32_t* spawn_count = nullptr;
  const Real* grad_energy = nullptr;        // [flows], given; likewise the next four
  const Real* grad_displacement = nullptr;  // [flows, 3]
  const Real* grad_delta = nullptr;
  const Real* grad_raw = nullptr;
  const Real* grad_child_energy = nullptr;
  kernels::Operands<Real> sums = {};  // [flows, all]: the first layer's sums in, their gradients out
  Real* grad_second = nullptr;        // [flows, 4]: energy, displacement x y z
  Real* second_operand = nullptr;     // the same rounded to bf16, for the products; null in fp32 mode
};

template <class Real>
TWINBENCH_HOST_DEVICE ResultGradients<Real> given_gradients(const BackwardArguments<Real>& a, std::int64_t flow) {
  return {.energy = a.grad_energy[flow],
          .displacement = Vector3<Real>::load(a.grad_displacement, flow),
          .delta = Vector3<Real>::load(a.grad_delta, flow),
          .raw = Vector3<Real>::load(a.grad_raw, flow),
          .child_energy = a.grad_child_energy[flow]};
}

void launch_backward(const BackwardArguments<float>& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::carrier_heads

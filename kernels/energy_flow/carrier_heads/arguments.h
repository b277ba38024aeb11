// Arguments and launchers of the carrier heads' kernels: everything but the joined first layer's product, which stays
// with cuBLAS. The CPU path fills the same structs, in double too.
#pragma once

#include "kernels/common/arguments.h"
#include "kernels/energy_flow/carrier_heads/math.h"
#include "kernels/energy_flow/common/head_columns.h"

namespace twinbench::energy_flow::carrier_heads {

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
  Real* activated = nullptr;                      // [flows, all], written by the CPU path alone
  Real* second_sums = nullptr;                    // [5, flows], for the backward pass; or null
};

// The second layers' sums that the backward pass needs, a plane each, so that neighbouring flows are neighbours.
template <class Real>
TWINBENCH_HOST_DEVICE void store_sums(Real* planes, std::int64_t flows, std::int64_t flow, const Sums<Real>& sums) {
  planes[flow] = sums.energy;
  planes[flows + flow] = sums.displacement.x;
  planes[2 * flows + flow] = sums.displacement.y;
  planes[3 * flows + flow] = sums.displacement.z;
  planes[4 * flows + flow] = sums.child;
}
template <class Real>
TWINBENCH_HOST_DEVICE Sums<Real> load_sums(const Real* planes, std::int64_t flows, std::int64_t flow, bool gate) {
  return {.energy = planes[flow],
          .displacement = {planes[flows + flow], planes[2 * flows + flow], planes[3 * flows + flow]},
          .gate = Real(0),
          .child = gate ? planes[4 * flows + flow] : Real(0)};
}
constexpr int kKeptSums = 5;

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

constexpr int kThreads = kHeadThreads;

void launch_forward(const ForwardArguments<float>& arguments, kernels::Stream stream);

// How the backward kernel divides its work, and what it sums over the flows. Of the sizes alone, so that the sums are
// reproducible.
struct BackwardPlan {
  std::int64_t flows_per_block = 0, blocks = 0;  // along the grid's x
  std::int32_t chunk = 0, chunks = 0;            // vectors of columns that a block takes; chunks along the grid's y
  std::int32_t trained = 0, energy_width = 0, head_width = 0;  // trained: leading columns of a row, padding included

  // A row of sums: [gradients of the trained columns | of energy's second layer | of displacement's x, y, z | of the
  // second layers' four biases], then padding.
  TWINBENCH_HOST_DEVICE std::int32_t energy_weight() const { return trained; }
  TWINBENCH_HOST_DEVICE std::int32_t displacement_weight() const { return trained + energy_width; }
  TWINBENCH_HOST_DEVICE std::int32_t out_bias() const { return displacement_weight() + 3 * head_width; }
  TWINBENCH_HOST_DEVICE std::int32_t sums() const { return out_bias() + 4; }
  TWINBENCH_HOST_DEVICE std::int32_t stride() const { return (sums() + 7) / 8 * 8; }
};
TWINBENCH_HOST_DEVICE std::int64_t backward_shared_bytes(int width) { return std::int64_t{4} * kThreads * width; }

constexpr std::int64_t kMostBackwardBlocks = 256;  // of one chunk: each leaves a row of sums to add up
constexpr std::int64_t kManyBlocks = 170;          // one for every multiprocessor; few flows are divided by columns too
constexpr int kLeastChunk = 8;                     // vectors of one 128-byte line

inline BackwardPlan backward_plan(std::int64_t flows, const Columns& columns, bool gate) {
  const auto quotient = [](std::int64_t count, std::int64_t each) { return (count + each - 1) / each; };
  const int width = columns_at_once(columns);
  BackwardPlan plan;
  plan.flows_per_block = quotient(quotient(flows, kMostBackwardBlocks), kFlowsPerBlock) * kFlowsPerBlock;
  plan.blocks = flows > 0 ? quotient(flows, plan.flows_per_block) : 0;
  plan.trained = columns.child() + (!gate ? 0 : width == 4 ? Columns::kChildColumns : 1);
  plan.energy_width = columns.energy_width;
  plan.head_width = columns.head_width;
  const std::int64_t vectors = plan.trained / width, wanted = quotient(kManyBlocks, plan.blocks > 0 ? plan.blocks : 1),
                     chunk = quotient(quotient(vectors, wanted), kLeastChunk) * kLeastChunk;
  plan.chunk = static_cast<std::int32_t>(chunk < kThreads ? chunk : kThreads);
  plan.chunks = static_cast<std::int32_t>(quotient(vectors, plan.chunk));
  return plan;
}

template <class Real>
struct BackwardArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Rule<Real> rule = {};
  Columns columns = {};
  std::int64_t flows = 0;
  const Real* bias = nullptr;
  const Real* energy_out_weight = nullptr;
  const Real* displacement_out_weight = nullptr;
  const Real* second_sums = nullptr;  // [5, flows]
  const std::int32_t* spawn_count = nullptr;
  const Real* grad_energy = nullptr;        // [flows], given; likewise the next four
  const Real* grad_displacement = nullptr;  // [flows, 3]
  const Real* grad_delta = nullptr;
  const Real* grad_raw = nullptr;
  const Real* grad_child_energy = nullptr;
  bool round = false;                     // the second layers' gradients and activations, as their products take them
  const Real* sums = nullptr;             // [flows, all], the first layers'
  kernels::Operands<Real> gradient = {};  // [flows, all], theirs; may take their place
  // CUDA only: the sums over flows, a row a block.
  BackwardPlan plan = {};
  Real* partial = nullptr;    // [plan.blocks, plan.stride()]
  Real* flow_sums = nullptr;  // [plan.sums()]
  // CPU only: the gradients of the second layers' sums.
  Real* grad_second = nullptr;     // [flows, 4]: energy, displacement x y z
  Real* second_operand = nullptr;  // the same rounded to bf16, for the products; null in fp32 mode
};

template <class Real>
TWINBENCH_HOST_DEVICE ResultGradients<Real> given_gradients(const BackwardArguments<Real>& a, std::int64_t flow) {
  return {.energy = a.grad_energy[flow],
          .displacement = Vector3<Real>::load(a.grad_displacement, flow),
          .delta = Vector3<Real>::load(a.grad_delta, flow),
          .raw = Vector3<Real>::load(a.grad_raw, flow),
          .child_energy = a.grad_child_energy[flow]};
}

// Two kernels: the gradients and each block's sums over flows, then the sums of those.
void launch_backward(const BackwardArguments<float>& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::carrier_heads

// Launchers of the carrier heads' kernels: everything but the joined first layer's product, which stays with cuBLAS.
#pragma once

#include <cstdint>

#include "kernels/common/stream.h"
#include "kernels/energy_flow/carrier_heads/math.h"

namespace twinbench::energy_flow::carrier_heads {

using kernels::Stream;

// Columns of the joined first layer: [energy | displacement | child (1) | gate | padding]; child and gate in gate mode only.
struct HeadColumns {
  std::int32_t energy_width, head_width;
  std::int32_t all;  // length of a row, padding included

  TWINBENCH_HOST_DEVICE std::int32_t displacement() const { return energy_width; }
  TWINBENCH_HOST_DEVICE std::int32_t child() const { return energy_width + head_width; }
  TWINBENCH_HOST_DEVICE std::int32_t gate() const { return child() + 1; }
};

struct HeadsArguments {
  HeadsRule rule;
  HeadColumns columns;
  const float* sums;                     // [flows, all], the product without bias
  const float* bias;                     // [all]
  const float* energy_out_weight;        // [energy_width]
  const float* displacement_out_weight;  // [3, head_width]
  const float* gate_out_weight;          // [head_width]
  const float* out_bias;                 // [5]: energy, displacement x y z, gate
  const float* position;                 // [flows, 3]
  const std::int64_t* sample_key;        // [flows]
  const std::int64_t* local_id;          // [flows]
  float* energy;                         // [flows]
  float* displacement;                   // [flows, 3]
  float* delta;                          // [flows, 3]
  float* raw;                            // [flows, 3]
  float* spawn_measure;                  // [flows]
  std::int32_t* spawn_count;             // [flows]
  float* child_energy;                   // [flows]
  float* activated;                      // [flows, all], for the backward pass; or null
  HeadSums* second_sums;                 // [flows], for the backward pass; or null
  std::int64_t flows;
  std::int32_t round;                    // 1: activations are rounded to bf16 (the weights are rounded already)
};
void launch_carrier_heads(const HeadsArguments& arguments, Stream stream);

struct HeadsBackwardArguments {
  HeadsRule rule;
  HeadColumns columns;
  const float* bias;
  const float* energy_out_weight;
  const float* displacement_out_weight;
  const HeadSums* second_sums;
  const std::int32_t* spawn_count;
  const float* grad_energy;              // [flows], given; likewise the next four
  const float* grad_displacement;        // [flows, 3]
  const float* grad_delta;
  const float* grad_raw;
  const float* grad_child_energy;
  float* sums;                           // [flows, all]: the first layer's sums in, their gradients out
  std::uint16_t* grad_sums_bf16;         // the same gradients for the products in bf16 mode, or null
  float* grad_second;                    // [flows, 4]: energy, displacement x y z
  float* second_operand;                 // the same rounded to bf16, as the products take it; null in fp32 mode
  std::int64_t flows;
};
void launch_carrier_heads_backward(const HeadsBackwardArguments& arguments, Stream stream);

// values rounded to bf16.
struct RoundArguments {
  const float* values;
  std::uint16_t* rounded;
  std::int64_t count;
};
void launch_round_to_bf16(const RoundArguments& arguments, Stream stream);

}  // namespace twinbench::energy_flow::carrier_heads

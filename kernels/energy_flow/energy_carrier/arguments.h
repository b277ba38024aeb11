// Launchers of the energy carrier's kernels: everything around the matrix products, which stay with cuBLAS.
#pragma once

#include <cstdint>

#include "kernels/common/stream.h"

namespace twinbench::energy_flow::energy_carrier {

using kernels::Stream;

// Joins features and energy, guards them and every layer's hidden state, counts the NaN of each flow.
// The bf16 copies are what the products take in bf16 mode; both null in fp32 mode.
struct CarrierGuardArguments {
  const float* features;        // [flows, features]
  const float* energy;          // [flows]
  const float* hidden;          // [layers, flows, width]
  float* input;                 // [flows, features + 1]
  float* guarded_hidden;        // [layers, flows, width]
  std::uint16_t* input_bf16;    // as input, or null
  std::uint16_t* hidden_bf16;   // as hidden, or null
  std::int32_t* guard_hits;     // [flows]
  std::int64_t flows;
  std::int32_t feature_count, width, layers;
};
void launch_carrier_guard(const CarrierGuardArguments& arguments, Stream stream);

// The pointwise half of one layer. Sums and biases hold the blocks reset, update, candidate.
struct CarrierGateArguments {
  const float* input_sums;      // [flows, 3*width]
  const float* hidden_sums;     // [flows, 3*width]
  const float* bias_input;      // [3*width]
  const float* bias_hidden;     // [3*width]
  const float* hidden;          // [flows, width], guarded
  float* next;                  // [flows, width], guarded
  float* operand;               // [flows, width], unguarded: the layer above multiplies it
  std::uint16_t* operand_bf16;  // the same in bf16 mode, or null
  float* kept;                  // [flows, 4*width]: reset, update, candidate, hidden candidate sum; or null
  std::int64_t flows;
  std::int32_t width;
};
void launch_carrier_gates(const CarrierGateArguments& arguments, Stream stream);

// Gradients of one layer's sums from those of its state.
struct CarrierGateBackwardArguments {
  const float* kept;                  // [flows, 4*width]
  const float* hidden;                // [flows, width], guarded
  const float* grad_stored;           // [flows, width], of the guarded next state
  const float* grad_above;            // [flows, width], of the output (top layer) or of the layer above's input
  float* grad_input_sums;             // [flows, 3*width]
  float* grad_hidden_sums;            // [flows, 3*width]
  float* grad_direct;                 // [flows, width], of the hidden state past the gates
  std::uint16_t* grad_input_bf16;     // as grad_input_sums, or null
  std::uint16_t* grad_hidden_bf16;    // as grad_hidden_sums, or null
  std::int64_t flows;
  std::int32_t width;
  std::int32_t top;                   // 1: what comes from above passes the output's guard
};
void launch_carrier_gates_backward(const CarrierGateBackwardArguments& arguments, Stream stream);

// Sums of the first `columns` columns over `count` rows that lie `stride` apart, in a fixed order.
struct ColumnSumArguments {
  const float* rows;
  float* sums;  // [columns]
  std::int64_t count;
  std::int32_t columns, stride;
};
void launch_column_sums(const ColumnSumArguments& arguments, Stream stream);

// The guards' backward pass: no gradient where a guard acted.
struct CarrierMaskArguments {
  const float* features;         // as CarrierGuardArguments
  const float* energy;
  const float* hidden;
  const float* grad_input;       // [flows, features + 1]
  const float* grad_direct;      // [layers, flows, width]
  const float* grad_product;     // [layers, flows, width]
  float* grad_features;
  float* grad_energy;
  float* grad_hidden;            // [layers, flows, width]: direct + product, masked
  std::int64_t flows;
  std::int32_t feature_count, width, layers;
};
void launch_carrier_mask(const CarrierMaskArguments& arguments, Stream stream);

}  // namespace twinbench::energy_flow::energy_carrier

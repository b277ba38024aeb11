// Arguments and launchers of the energy carrier's kernels. The matrix products stay with cuBLAS, but for the forward
// pass in bf16, where tensor-core tiles with the gates in their epilogue may take their place (fuses_gates).
#pragma once

#include "kernels/common/arguments.h"

namespace twinbench::energy_flow::energy_carrier {

using kernels::DesignatedOnly;
using kernels::Operands;
using kernels::Stream;

struct Shape {
  std::int64_t flows = 0;
  std::int32_t features = 0, width = 0, layers = 0;
};

// Columns of the joined input, features and energy and then zeros: rows of whole sectors of 32 bytes, in bf16 too.
TWINBENCH_HOST_DEVICE std::int32_t input_width(const Shape& shape) { return (shape.features + 16) / 16 * 16; }

// Joins features and energy, guards them and the hidden state of the first `guarded_layers` layers, counts the NaN of
// each flow there. Null operands are not written: in bf16 the products take the rounded ones, and all else guards the
// given state itself.
struct GuardArguments {
  DesignatedOnly designated = DesignatedOnly();
  Shape shape = {};
  std::int32_t guarded_layers = 0;
  const float* features = nullptr;      // [flows, features]
  const float* energy = nullptr;        // [flows]
  const float* hidden = nullptr;        // [layers, flows, width]
  Operands<float> input = {};           // [flows, input_width]
  Operands<float> guarded_hidden = {};  // [layers, flows, width]
  std::int32_t* guard_hits = nullptr;   // [flows]
};
void launch_guard(const GuardArguments& arguments, Stream stream);

// The pointwise half of one layer. Sums and biases hold the blocks reset, update, candidate.
struct GatesArguments {
  DesignatedOnly designated = DesignatedOnly();
  Shape shape = {};
  const float* input_sums = nullptr;   // [flows, 3*width]
  const float* hidden_sums = nullptr;  // [flows, 3*width]
  const float* bias_input = nullptr;   // [3*width]
  const float* bias_hidden = nullptr;  // [3*width]
  const float* hidden = nullptr;       // [flows, width], as given
  float* next = nullptr;               // [flows, width], guarded
  Operands<float> operand = {};  // [flows, width], unguarded: the layer above multiplies it; none in the top layer
  float* kept = nullptr;         // [flows, 4*width]: reset, update, candidate, hidden candidate sum; or null
};
void launch_gates(const GatesArguments& arguments, Stream stream);

// The fused kernel's tiles: many blocks at small sizes; at large ones 128 or 160 flows, whichever leaves fewer
// multiprocessors idle in the last round.
enum class FusedTile { kSmall, kLarge, kTall };
constexpr std::int64_t flows_of(FusedTile tile) {
  return tile == FusedTile::kSmall ? 64 : tile == FusedTile::kLarge ? 128 : 160;
}
constexpr std::int64_t channels_of(FusedTile tile) { return tile == FusedTile::kSmall ? 16 : 64; }

// A whole layer in one kernel: both products in bf16 on tensor cores, then the same as GatesArguments, and the guard of
// the next layer's hidden state. The width is a multiple of eight.
struct FusedGatesArguments {
  DesignatedOnly designated = DesignatedOnly();
  Shape shape = {};
  std::int32_t input_width = 0;                   // a multiple of eight, as shape.width is
  const std::uint16_t* input = nullptr;           // [flows, input_width]
  const std::uint16_t* hidden_operand = nullptr;  // [flows, width], guarded
  const std::uint16_t* weight_input = nullptr;    // [3*width, input_width]
  const std::uint16_t* weight_hidden = nullptr;   // [3*width, width]
  const float* bias_input = nullptr;              // [3*width]
  const float* bias_hidden = nullptr;             // [3*width]
  const float* hidden = nullptr;                  // [flows, width], as given
  float* next = nullptr;                          // [flows, width], guarded
  std::uint16_t* operand = nullptr;               // [flows, width], unguarded, or null
  float* kept = nullptr;                          // [flows, 4*width] or null
  // The layer above, whose state no pass has guarded yet; all null in the top layer.
  const float* hidden_above = nullptr;     // [flows, width], as given
  std::uint16_t* operand_above = nullptr;  // [flows, width], guarded
  std::int32_t* guard_hits = nullptr;      // [flows], to which its NaN are added
};
void launch_fused_gates(FusedTile tile, const FusedGatesArguments& arguments, Stream stream);

// Gradients of one layer's sums from those of its state.
struct GatesBackwardArguments {
  DesignatedOnly designated = DesignatedOnly();
  Shape shape = {};
  const float* kept = nullptr;            // [flows, 4*width]
  const float* hidden = nullptr;          // [flows, width], as given
  const float* grad_stored = nullptr;     // [flows, width], of the guarded next state
  const float* grad_above = nullptr;      // [flows, width], of the output (top layer) or of the layer above's input
  Operands<float> grad_input_sums = {};   // [flows, 3*width]
  Operands<float> grad_hidden_sums = {};  // [flows, 3*width]
  float* grad_direct = nullptr;           // [flows, width], of the hidden state past the gates
  bool top = false;                       // what comes from above passes the output's guard
};
void launch_gates_backward(const GatesBackwardArguments& arguments, Stream stream);

// The guards' backward pass: no gradient where a guard acted.
struct MaskArguments {
  DesignatedOnly designated = DesignatedOnly();
  Shape shape = {};
  const float* features = nullptr;  // as GuardArguments
  const float* energy = nullptr;
  const float* hidden = nullptr;
  const float* grad_input = nullptr;    // [flows, input_width]
  const float* grad_direct = nullptr;   // [layers, flows, width]
  const float* grad_product = nullptr;  // [layers, flows, width]
  float* grad_features = nullptr;
  float* grad_energy = nullptr;
  float* grad_hidden = nullptr;  // [layers, flows, width]: direct + product, masked
};
void launch_mask(const MaskArguments& arguments, Stream stream);

}  // namespace twinbench::energy_flow::energy_carrier

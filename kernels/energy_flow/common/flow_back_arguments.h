// Arguments and launchers of the whole backward pass's own kernels (C17), in the namespace that had them first. The
// forward steps are the whole forward's; what leaves more on the tape is here. No CUDA headers: optimized/ stays
// host-compiled. How many rows a step had, only the device knows: every grid is for as many as there can be.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/flow_arguments.h"
#include "kernels/energy_flow/common/flow_back_sums.h"

namespace twinbench::energy_flow::flow_backward {

using flow_forward::TileArguments;

// What a step leaves of each of its rows beside its state, [slots] each. Children: where any was asked for.
struct StepRows {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const std::int32_t* total = nullptr;                       // [1]: rows that there are
  std::int32_t *slot = nullptr, *source = nullptr;           // source: row of the state before, in the step before
  float *x = nullptr, *y = nullptr, *z = nullptr;            // before the step
  float* energy = nullptr;                                   // likewise
  float* second_sums = nullptr;                              // [5][slots]: energy, displacement x y z, child
  float *slope_x = nullptr, *slope_y = nullptr;              // of the reflection
  std::int32_t* requests = nullptr;                          // before admission
  std::int32_t *first_child = nullptr, *children = nullptr;  // slots, one after the other; how many were admitted
};

// What the loss says of each flow's state, by its slot: of that after a step, and in place of that before it.
struct Adjoints {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  float *x = nullptr, *y = nullptr, *z = nullptr, *energy = nullptr;  // [slots]
  float* hidden = nullptr;                                            // [layers, slots, stride]
};

// Flows that a step can have, as rows of a matrix; the rest of what is added to sums.
struct Steps {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t slots = 0;
  bool first = false;  // of the backward pass: sums begin with it
};

// The heads and the rules of a step, as the whole forward has them, and what is left of them for the way back.
struct TapedArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  flow_forward::Arguments forward = {};
  StepRows tape = {};
  std::int64_t slots = 0;  // for which the tape has room: as many as there can be, however few samples a pass has
};
void launch_finish_taped(const TapedArguments& arguments, kernels::Stream stream);
void launch_settle_taped(const TapedArguments& arguments, kernels::Stream stream);

// Steps computed again from the states that every so many of them began with (C31): a row each, as steps list them.
struct StartRows {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  float *x = nullptr, *y = nullptr, *z = nullptr, *energy = nullptr;  // [slots]
  std::int32_t* age = nullptr;                                        // likewise
};
struct StartArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t slots = 0;
  const std::int32_t* total = nullptr;  // [1]: rows that there are
  const std::int32_t* slot = nullptr;   // [slots]
  flow_forward::SlotFields flows = {};
  StartRows start = {};
};
void launch_keep_start(const StartArguments& arguments, kernels::Stream stream);  // from the flows
void launch_take_start(const StartArguments& arguments, kernels::Stream stream);  // to the flows

// Children that were admitted after a step once more, from what it left of their parents.
struct BearArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t slots = 0;
  StepRows tape = {};
  flow_forward::RowResults results = {};
  flow_forward::SlotFields flows = {};
};
void launch_bear_again(const BearArguments& arguments, kernels::Stream stream);

// A recurrent layer whose gates are kept: in the forward pass with the state, on the way back (no `out`) alone.
struct GatesArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  TileArguments tile = {};
  float* gates = nullptr;  // [slots][4][stride]: reset, update, candidate, the candidate's sum of the state
};
void launch_gates(const GatesArguments& arguments, kernels::Stream stream);

// The states after a step, as the layer above took them, from gates that were kept and from states in bf16 before it.
struct NextStatesArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t slots = 0;
  const std::int32_t* total = nullptr;   // [1]: rows that there are
  const std::int32_t* source = nullptr;  // [slots]
  std::int32_t stride = 0, layers = 0;
  const std::uint16_t* stored = nullptr;  // [layers, slots, stride], by source
  const float* gates = nullptr;           // [layers, slots, 4, stride]
  float* next = nullptr;                  // [layers, slots, stride]
};
void launch_next_states(const NextStatesArguments& arguments, kernels::Stream stream);

// Zeros for all adjoints: `count` floats from `all` on, a multiple of four.
struct ClearArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  float* all = nullptr;
  std::int64_t count = 0;
};
void launch_clear(const ClearArguments& arguments, kernels::Stream stream);

// From the gradient of the surface to those of the energies with which flows ended.
struct UncollectArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  flow_forward::Arguments forward = {};
  const float* grad_surface = nullptr;  // [samples, cells]
  float* grad_energy = nullptr;         // [slots]: of those that are in a cell
};
void launch_uncollect(const UncollectArguments& arguments, kernels::Stream stream);

// Through the rules of a step and the heads' second layers, to the sums of the first ones; with the gradients of the
// second layers' parameters.
struct HeadsBackArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Steps steps = {};
  StepRows tape = {};
  Adjoints adjoints = {};
  carrier_heads::Rule<float> rule = {};
  const float* scale = nullptr;  // as the forward steps have it
  carrier_heads::Columns columns = {};
  const float *sums = nullptr, *bias = nullptr;  // [slots, columns.all] without bias, [columns.all]
  const float *energy_out_weight = nullptr, *displacement_out_weight = nullptr;
  ColumnLayout layout = {};
  bool round = false;         // in bf16 mode; weights are operands, the gradient is stored as one
  float* gradient = nullptr;  // [slots, gradient_stride], zeros from layout.trained on
  std::int32_t gradient_stride = 0;
  float* partial = nullptr;  // [column_blocks(slots), layout.stride()]
};
void launch_heads_back(const HeadsBackArguments& arguments, kernels::Stream stream);

// Through the gates of one layer, to its sums of input and of state: blocks reset, update, candidate, each of `stride`.
struct GatesBackArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t slots = 0;
  StepRows tape = {};
  std::int32_t stride = 0;
  bool top = false;                       // what comes from above passes the output's guard
  const float* gates = nullptr;           // as GatesArguments
  const float* state = nullptr;           // [slots, stride], before the step, by tape.source
  const std::uint16_t* stored = nullptr;  // likewise, in its place: in bf16 (hidden_dtype)
  const float* above = nullptr;           // [slots, stride], of what went up
  float* hidden = nullptr;    // [slots, stride] of the layer's adjoints; then the part that goes past the gates
  float* of_input = nullptr;  // [slots, 3 * stride]
  float* of_state = nullptr;  // [slots, 3 * stride]
};
void launch_gates_back(const GatesBackArguments& arguments, kernels::Stream stream);

// out = gradient * weight, or added to the adjoints of a layer's state.
struct ProductArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  TileArguments tile = {};        // input: the gradients; no state; columns of `out` or of the adjoints
  float* adjoints = nullptr;      // [slots, tile.columns], by `slot`; null: the sums go to tile.out
  const float* before = nullptr;  // [slots, tile.columns], by `source`: the guarded state that was multiplied
  const std::uint16_t* stored_before = nullptr;  // likewise, in its place: in bf16
  const std::int32_t *slot = nullptr, *source = nullptr;
};
// Of one product, or of two.
struct ProductsArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  ProductArguments of[2] = {};
  int count = 1;
};
void launch_products(const ProductsArguments& arguments, kernels::Stream stream);

// sums += gradient^T * values, and the sums of the gradient's columns.
struct MatrixArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const float* gradient = nullptr;        // [slots, gradients]
  const float* values = nullptr;          // [slots, width]
  const std::uint16_t* stored = nullptr;  // likewise, in their place: in bf16
  const std::int32_t* source = nullptr;   // [slots]: row of the values, none: zeros; null: the own one
  bool guards = false;                    // the values, when they are read
  bool round = false;                     // them too, to bf16
  std::int32_t gradients = 0, width = 0;  // multiples of eight
  std::int64_t weight = 0, bias = 0;      // where their sums begin in a row of `partial`
};
struct MatricesArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Steps steps = {};
  const std::int32_t* total = nullptr;
  MatrixArguments of[2] = {};
  int count = 1;
  bool tf32 = false;  // products by tensor cores
  std::int32_t pieces = 1;
  float* partial = nullptr;  // [pieces, stride]
  std::int64_t stride = 0;
};
void launch_matrices(const MatricesArguments& arguments, kernels::Stream stream);

// Through the neuron, and to the adjoints before the step.
struct NeuronBackArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Steps steps = {};
  StepRows tape = {};
  Adjoints adjoints = {};
  simple_neuron::Layout layout = {};
  bool round = false;                 // in bf16 mode; weights are operands
  const float* weights = nullptr;     // packed
  const float* grad_input = nullptr;  // [slots, input_stride]: of features and energy, guarded
  std::int32_t input_stride = 0;
  float* partial = nullptr;  // [simple_neuron::backward_blocks(slots), layout.padded()]
};
void launch_neuron_back(const NeuronBackArguments& arguments, kernels::Stream stream);

// Bytes of a row: of every step, of one that begins a segment, and of each step of the segment at hand.
struct TapeBytes {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t of_record = 0, of_start = 0, of_step = 0;
};

// The gradients of the energies with which flows began, and what the steps' rows hold.
struct ReturnArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  flow_forward::Slots slots = {};
  std::int32_t placed = 0, cells = 0;
  const float* adjoint = nullptr;        // [slots]
  float* grad_energy = nullptr;          // [samples, cells]
  const std::int32_t* totals = nullptr;  // [steps]
  std::int32_t steps = 0, every = 0;     // every: steps of a segment, at least one
  TapeBytes bytes = {};
  std::int64_t* tape_bytes = nullptr;  // [4]: after the forward half, after this, at most; steps computed forward
};
void launch_return(const ReturnArguments& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::flow_backward

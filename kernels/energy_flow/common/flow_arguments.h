// Arguments of the kernels that take live flows through their steps (C16), and their launchers. No CUDA headers:
// optimized/ stays host-compiled. How many flows are live, only the device knows: every grid is for as many as there
// can be. In the namespace of the component that had them first; the whole backward pass takes them too.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/flow_slots.h"
#include "kernels/energy_flow/common/flow_statistics.h"
#include "kernels/energy_flow/common/head_columns.h"
#include "kernels/energy_flow/common/neuron_stage.h"
#include "kernels/energy_flow/common/stop_rule.h"

namespace twinbench::energy_flow::flow_forward {

// What is known of flows, a slot each.
struct SlotFields {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  float *x = nullptr, *y = nullptr, *z = nullptr, *energy = nullptr, *distance = nullptr;
  std::int32_t* age = nullptr;
  std::uint8_t* status = nullptr;
};

// Flows in the order of samples and numbers: where each is kept, and which row its state had in the step before.
struct FlowRows {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int32_t *slot = nullptr, *source = nullptr;
};

// What a step leaves for its end, a row each. Place before the step and energy of a child: where one is asked for.
struct RowResults {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  float *x = nullptr, *y = nullptr, *z = nullptr, *child_energy = nullptr;
  float* margin = nullptr;
  std::int32_t *outcome = nullptr, *requests = nullptr;
};

// The heads' second layers, by the names that HeadSums asks for.
struct HeadsArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  carrier_heads::Rule<float> rule = {};
  const float* scale = nullptr;  // [1]: the rule's, where the device works it out; null: the rule has it
  carrier_heads::Columns columns = {};
  std::int64_t flows = 0;  // the device's own count
  bool round = false;
  const float *sums = nullptr, *bias = nullptr;  // [rows, all], [all]
  const float *energy_out_weight = nullptr, *displacement_out_weight = nullptr, *gate_out_weight = nullptr;
  const float* out_bias = nullptr;  // [5]
};

struct Arguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  Slots slots = {};
  std::int32_t placed = 0, width = 0, height = 0;
  float start_depth = 0;
  StopRule stop = {};
  flow_movement::Rule movement = {};
  std::int32_t step = 0, pass = 0;  // the step at hand; what is written once no sample goes on
  // [2]: the step that was looked at last, and the pass, where a recorded step finds them on the device. The step at
  // hand is then `step` steps later. Null: both are as given.
  std::int32_t* clock = nullptr;
  std::int64_t most_rows = 0;                // that a step's grids are for; 0: as many as there are slots
  const float* energies = nullptr;           // [samples, cells], the mapper's
  const std::int64_t* sample_key = nullptr;  // [samples]
  SlotFields flows = {};                     // [slots]
  FlowRows rows = {};                        // [slots]: of the live flows of all samples, one after the other
  FlowRows next = {};                        // [slots]: of the next step, each sample's from its first slot on
  RowResults results = {};                   // [slots]
  // [samples]: first row and rows of the step; flows for the next one; flows that a stop ends.
  std::int32_t *begin = nullptr, *live = nullptr, *next_live = nullptr, *ending = nullptr;
  std::int32_t* total = nullptr;  // [1]: rows of all samples
  StopStates states = {};
  std::int32_t* all_finished = nullptr;
  simple_neuron::Layout neuron = {};
  const float* neuron_weights = nullptr;  // packed
  float* input = nullptr;                 // [slots, input_stride]: features, energy, zeros; guarded
  std::int32_t input_stride = 0;
  bool round = false;  // bf16 mode: operands of neuron and heads, whose weights are rounded already
  HeadsArguments heads = {};
  // What is returned.
  float *surface = nullptr, *margin = nullptr;       // [samples, cells], [samples]
  std::int32_t *stats = nullptr, *active = nullptr;  // [samples, kStatistics], [samples, max_steps]

  TWINBENCH_HOST_DEVICE std::int32_t cells() const { return width * height; }
  TWINBENCH_HOST_DEVICE std::int32_t step_at_hand() const { return clock == nullptr ? step : clock[0] + step; }
  TWINBENCH_HOST_DEVICE std::int32_t pass_at_hand() const { return clock == nullptr ? pass : clock[1]; }
  std::int64_t rows_at_most() const { return most_rows > 0 ? most_rows : slots.all(); }
  TWINBENCH_HOST_DEVICE std::int32_t* stats_of(std::int64_t sample) const { return stats + sample * kStatistics; }
};

// One product of all live flows' rows; of a recurrent layer two, with the gates behind them.
struct TileArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const std::int32_t* total = nullptr;  // rows that there are
  std::int64_t rows = 0;                // that there can be
  const float* input = nullptr;         // [rows, input_stride], taken as it is; none where that is 0
  const float* state = nullptr;         // [rows, stride], guarded when it is read
  // hidden_dtype, [rows, stride]: in its place what was rounded to bf16, and where the next state goes, rounded, beside
  // `out`.
  const std::uint16_t* stored = nullptr;
  std::uint16_t* out_stored = nullptr;
  std::int32_t input_stride = 0, stride = 0;  // multiples of kSliceDepth
  const std::int32_t* source = nullptr;       // [rows]: of each row's state; null: its own
  const float* weights = nullptr;             // [tiles][input_stride + stride][kTileColumns]
  const float* biases = nullptr;              // [tiles][4][kTileChannels]: reset, update, candidate of input, of state
  float* out = nullptr;                       // [rows, stride], the next state; of the heads [rows, columns]
  std::int32_t columns = 0;                   // of the heads
  bool round = false;                         // of the heads: the state is rounded to bf16, an operand
  bool stores = false;                        // of a recurrent layer: states are `stored`
  bool tf32 = false;                          // products by tensor cores
};

constexpr int kSampleThreads = 256;

// One kernel each. Throw CudaError if the launch is refused. Nothing to do: nothing is launched.
void launch_place(const Arguments& arguments, kernels::Stream stream);
void launch_look(const Arguments& arguments, kernels::Stream stream);
void launch_list(const Arguments& arguments, kernels::Stream stream);
void launch_neuron(const Arguments& arguments, kernels::Stream stream);
void launch_recurrent(const TileArguments& arguments, kernels::Stream stream);
void launch_head_products(const TileArguments& arguments, kernels::Stream stream);
void launch_finish(const Arguments& arguments, kernels::Stream stream);
void launch_settle(const Arguments& arguments, kernels::Stream stream);
void launch_collect(const Arguments& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::flow_forward

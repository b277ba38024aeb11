// Arguments and launchers of energy_flow.text_decoder's kernels. No CUDA headers, so that optimized/ stays
// host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/energy_flow/common/layer_arguments.h"

namespace twinbench::energy_flow::text_decoder {

// A product whose weights are streamed once for 16 rows: out = x weight^T, or what a step makes of it.
struct ProductArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0, inner = 0, columns = 0, groups = 1;
  const float* x = nullptr;       // [groups, rows, inner]; x_group 0: the same for all
  std::int64_t x_group = 0;       // floats
  const float* gain = nullptr;    // [inner]: x is normalised by its root mean square first; null: it is not
  const float* weight = nullptr;  // [groups, columns, inner]; null: in bf16, and x is rounded
  const std::uint16_t* weight_bf16 = nullptr;
  float* out = nullptr;        // [groups, rows, columns]
  std::int64_t out_step = 0;   // floats between the places of two steps
  const float* add = nullptr;  // [rows, columns], to the sum
  bool accumulate = false;     // to what out holds
  bool relu = false;
  const std::int32_t* done = nullptr;  // [rows]: not 0, the row is left out; null: none is
  const std::int32_t* step = nullptr;  // [1]
  // Instead of `out`: the two largest of a block's columns, times `scale`. best, second and id are [rows, blocks].
  float *best = nullptr, *second = nullptr;
  std::int32_t* id = nullptr;
  float scale = 1;
  std::int32_t* step_to_pick = nullptr;  // [1]: gets *step
};

constexpr int kProductColumns = 16;  // of a block
constexpr int kProductRows = 16;
TWINBENCH_HOST_DEVICE std::int64_t product_pieces(std::int64_t columns) {
  return (columns + kProductColumns - 1) / kProductColumns;
}

// y = (x - mean) / deviation * gain + shift, row by row, in place.
struct NormaliseArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0, width = 0;
  float* x = nullptr;                             // [rows, width]
  const float *gain = nullptr, *shift = nullptr;  // [width]
};

// The rest of a decode: its start, a step's attention and choice, its texts.
struct DecodeArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0, cells = 0, heads = 0, width = 0, tokens = 0, text_bytes = 0, pieces = 0;
  const float* surface = nullptr;                  // [rows, cells]
  const float* embedding = nullptr;                // [vocabulary, model], not rounded
  const float* positions = nullptr;                // [tokens, model]
  float* x = nullptr;                              // [rows, model]
  bool round = false;                              // operands to bf16
  const float *best = nullptr, *second = nullptr;  // [rows, pieces]: of the logits
  const std::int32_t* id = nullptr;
  std::int64_t* token = nullptr;  // [rows, tokens]
  float *logit = nullptr, *gap = nullptr;
  std::int32_t *length = nullptr, *text_length = nullptr;  // [rows]
  std::uint8_t* text = nullptr;                            // [rows, text_bytes]
  const std::uint8_t* word_bytes = nullptr;
  const std::int64_t* word_offsets = nullptr;  // [vocabulary + 1]
  std::int32_t* done = nullptr;                // [rows]
  std::int32_t *step = nullptr, *step_to_pick = nullptr, *finished = nullptr, *pass_at_hand = nullptr;  // [1]
  unsigned* started = nullptr;                                                                          // [1], zero
  std::int32_t* all_finished = nullptr;  // of host and device: gets the pass when all rows have ended
  std::int32_t pass = 0;                 // of this run

  TWINBENCH_HOST_DEVICE std::int64_t model() const { return heads * width; }
};

// Self-attention of one position a row, over those before it.
struct AttendArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0, heads = 0, width = 0, tokens = 0;
  const float* cache = nullptr;  // [tokens, rows, 3, heads * width]: queries, keys, values
  float* mixed = nullptr;        // [rows, heads * width]
  float scale = 1;
  bool round = false;
  const std::int32_t *done = nullptr, *step = nullptr;
};

// One kernel each. Throw CudaError if the launch is refused. No row: nothing is launched.
void launch_start(const DecodeArguments& arguments, kernels::Stream stream);
// `operand`: x is rounded already.
void launch_adapter_layer(const output_collector::LayerArguments& arguments, kernels::Stream stream);
void launch_normalise(const NormaliseArguments& arguments, kernels::Stream stream);
void launch_product(const ProductArguments& arguments, kernels::Stream stream);
void launch_logits(const ProductArguments& arguments, kernels::Stream stream);
void launch_attend(const AttendArguments& arguments, kernels::Stream stream);
void launch_pick(const DecodeArguments& arguments, kernels::Stream stream);
void launch_join(const DecodeArguments& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::text_decoder

// Arguments and launchers of the training step's kernels of texts (C21, C23, C24). No CUDA headers: optimized/ stays
// host-compiled.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"

namespace twinbench::energy_flow::train_step {

// Texts of a micro-step's rows to where the encoder takes them. Rows that are not there hold the empty text, and their
// surfaces have no gradient.
struct StageTextsArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const std::int32_t *token = nullptr, *length = nullptr;  // [rows, most], [rows]
  const std::int64_t* key = nullptr;                       // [rows]
  std::int64_t rows = 0, batch = 0, most = 0, cells = 0;
  std::int32_t *to_token = nullptr, *to_length = nullptr;  // [batch, most], [batch]
  std::int64_t* to_key = nullptr;                          // [batch]
  float* gradient = nullptr;                               // [batch, cells]
};
void launch_stage_texts(const StageTextsArguments& arguments, kernels::Stream stream);

// The decoder's loss (C23), of texts that lie on the device: the mean of what their words and those that were wanted do
// not share.
struct DecodedLossArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const std::uint8_t* predicted = nullptr;       // [texts, room]
  const std::int32_t* predicted_size = nullptr;  // [texts]
  std::int64_t texts = 0, room = 0;
  const std::uint8_t* wanted = nullptr;
  const std::int64_t* wanted_offsets = nullptr;  // [texts + 1], among `wanted`
  double* loss = nullptr;                        // [1]
};
void launch_decoded_loss(const DecodedLossArguments& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::train_step

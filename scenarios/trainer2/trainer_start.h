// What the trainer begins with (trainer2 C02): weights of the forward stand-in, the field, and the data set.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "scenarios/runner/config.h"
#include "src/setting.h"

namespace twinbench::trainer2 {

struct TrainerStart {
  at::Tensor embedding;    // [vocabulary, width]
  at::Tensor into_hidden;  // [width, hidden]
  at::Tensor from_field;   // [dimension, hidden]
  at::Tensor from_hidden;  // [hidden, width]
  at::Tensor field;        // [grid_width, grid_height, dimension, dimension], complex
  at::Tensor ids;          // [sequences, tokens], int64

  // Copies of their own: floating and complex ones in fp64 where the dtype is kFp64.
  TrainerStart placed(Dtype dtype, c10::Device device) const;
};

// fp32 and complex64 on the CPU, a pure function of the scenario's seed and sizes: every element has a Philox counter
// of its own, so that all implementations begin with the same bits.
TrainerStart trainer_start(const ScenarioConfig& config);

}  // namespace twinbench::trainer2

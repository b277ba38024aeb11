// Arithmetic of the energy carrier's gated recurrent unit, one channel of one flow: forward, backward. Host and device.
// The matrix products are elsewhere; what arrives here are their sums with the biases added.
#pragma once

#include <cstdint>

#include "kernels/common/math.h"

namespace twinbench::energy_flow {

inline constexpr float kGuardLimit = 10.0f;

// The gates of one channel and its next state (energy-flow specification C07, "reset after multiply").
struct GruChannel {
  float reset, update, candidate, next;
};

// reset_sum and update_sum hold input and hidden products; the candidate keeps its two products apart, because the
// reset gate scales only the hidden one.
TWINBENCH_HOST_DEVICE GruChannel gru_channel(float reset_sum, float update_sum, float candidate_input,
                                             float candidate_hidden, float hidden) {
  const float reset = kernels::sigmoid(reset_sum);
  const float update = kernels::sigmoid(update_sum);
  const float candidate = kernels::tanh(candidate_input + reset * candidate_hidden);
  return {reset, update, candidate, candidate + update * (hidden - candidate)};
}

// Gradients of the sums that gru_channel took, and of the hidden state through the direct path only.
struct GruChannelGradient {
  float reset_sum, update_sum, candidate_input, candidate_hidden, hidden;
};

TWINBENCH_HOST_DEVICE GruChannelGradient gru_channel_gradient(float reset, float update, float candidate,
                                                              float candidate_hidden, float hidden,
                                                              float grad_next) {
  const float grad_candidate_sum =
      grad_next * (1.0f - update) * kernels::tanh_derivative_from_output(candidate);
  const float grad_update = grad_next * (hidden - candidate);
  const float grad_reset = grad_candidate_sum * candidate_hidden;
  return {grad_reset * kernels::sigmoid_derivative_from_output(reset),
          grad_update * kernels::sigmoid_derivative_from_output(update), grad_candidate_sum,
          grad_candidate_sum * reset, grad_next * update};
}

// What a matrix product is given: the value itself, or the value rounded to bf16 (numeric mode BF16).
TWINBENCH_HOST_DEVICE float product_operand(float value, bool round) {
  return round ? kernels::round_to_bf16(value) : value;
}

}  // namespace twinbench::energy_flow

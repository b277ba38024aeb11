// Arithmetic of the energy carrier's gated recurrent unit (C07), one channel of one flow. Host and device. The matrix
// products are elsewhere; what arrives here are their sums with the biases added. In the namespace of the component
// that specifies it; the whole forward takes it too.
#pragma once

#include "kernels/common/math.h"
#include "kernels/common/short_math.h"

namespace twinbench::energy_flow::energy_carrier {

inline constexpr float kGuardLimit = 10.0f;

// The gates of one channel and its next state (energy-flow specification C07, "reset after multiply").
template <class Real>
struct Channel {
  Real reset, update, candidate, next;
};

template <class Real>
TWINBENCH_HOST_DEVICE Real next_state(Real update, Real candidate, Real hidden) {
  return candidate + update * (hidden - candidate);
}

// reset_sum and update_sum hold input and hidden products; the candidate keeps its two products apart, because the
// reset gate scales only the hidden one.
template <class Real>
TWINBENCH_HOST_DEVICE Channel<Real> gru_channel(Real reset_sum, Real update_sum, Real candidate_input,
                                                Real candidate_hidden, Real hidden) {
  const Real reset = kernels::sigmoid(reset_sum);
  const Real update = kernels::sigmoid(update_sum);
  const Real candidate = kernels::tanh(candidate_input + reset * candidate_hidden);
  return {reset, update, candidate, next_state(update, candidate, hidden)};
}

// The same with the short forms of sigmoid and tanh, a sixth of the instructions: operands are rounded to bf16 there.
TWINBENCH_HOST_DEVICE Channel<float> short_gru_channel(float reset_sum, float update_sum, float candidate_input,
                                                       float candidate_hidden, float hidden) {
  const float reset = kernels::short_sigmoid(reset_sum), update = kernels::short_sigmoid(update_sum);
  const float candidate = kernels::short_tanh(kernels::multiply_add(reset, candidate_hidden, candidate_input));
  return {reset, update, candidate, kernels::multiply_add(update, hidden - candidate, candidate)};
}

}  // namespace twinbench::energy_flow::energy_carrier

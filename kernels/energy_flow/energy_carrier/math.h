// Arithmetic of the energy carrier's gated recurrent unit, one channel of one flow: forward, backward. Host and device.
// The matrix products are elsewhere; what arrives here are their sums with the biases added.
#pragma once

#include "kernels/common/math.h"

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

// Gradients of the sums that gru_channel took, and of the hidden state through the direct path only.
template <class Real>
struct ChannelGradient {
  Real reset_sum, update_sum, candidate_input, candidate_hidden, hidden;
};

template <class Real>
TWINBENCH_HOST_DEVICE ChannelGradient<Real> gru_channel_gradient(Real reset, Real update, Real candidate,
                                                                 Real candidate_hidden, Real hidden, Real grad_next) {
  const Real grad_candidate_sum = grad_next * (Real(1) - update) * kernels::tanh_derivative_from_output(candidate);
  const Real grad_update = grad_next * (hidden - candidate);
  const Real grad_reset = grad_candidate_sum * candidate_hidden;
  return {grad_reset * kernels::sigmoid_derivative_from_output(reset),
          grad_update * kernels::sigmoid_derivative_from_output(update), grad_candidate_sum, grad_candidate_sum * reset,
          grad_next * update};
}

// The same from the gradients of the two things the next state became: the stored state, which a guard clamped, and
// what went above, which a guard clamped in the top layer only (there it is the output).
template <class Real>
TWINBENCH_HOST_DEVICE ChannelGradient<Real> guarded_channel_gradient(Real reset, Real update, Real candidate,
                                                                     Real candidate_hidden, Real hidden,
                                                                     Real grad_stored, Real grad_above, bool top) {
  const Real pass = kernels::guard_derivative(next_state(update, candidate, hidden), Real(kGuardLimit));
  const Real pass_above = top ? pass : Real(1);
  return gru_channel_gradient(reset, update, candidate, candidate_hidden, hidden,
                              grad_stored * pass + grad_above * pass_above);
}

}  // namespace twinbench::energy_flow::energy_carrier

// Arithmetic of the energy carrier's gated recurrent unit, one channel of one flow: forward, backward. Host and device.
// The matrix products are elsewhere; what arrives here are their sums with the biases added.
#pragma once

#include <cstdint>

#include "kernels/common/math.h"

namespace twinbench::energy_flow::energy_carrier {

inline constexpr float kGuardLimit = 10.0f;

// The gates of one channel and its next state (energy-flow specification C07, "reset after multiply").
template <class Real>
struct GruChannelOf {
  Real reset, update, candidate, next;
};
using GruChannel = GruChannelOf<float>;

// reset_sum and update_sum hold input and hidden products; the candidate keeps its two products apart, because the
// reset gate scales only the hidden one.
template <class Real>
TWINBENCH_HOST_DEVICE GruChannelOf<Real> gru_channel(Real reset_sum, Real update_sum, Real candidate_input,
                                                     Real candidate_hidden, Real hidden) {
  const Real reset = kernels::sigmoid(reset_sum);
  const Real update = kernels::sigmoid(update_sum);
  const Real candidate = kernels::tanh(candidate_input + reset * candidate_hidden);
  return {reset, update, candidate, candidate + update * (hidden - candidate)};
}

// Gradients of the sums that gru_channel took, and of the hidden state through the direct path only.
template <class Real>
struct GruChannelGradientOf {
  Real reset_sum, update_sum, candidate_input, candidate_hidden, hidden;
};
using GruChannelGradient = GruChannelGradientOf<float>;

template <class Real>
TWINBENCH_HOST_DEVICE GruChannelGradientOf<Real> gru_channel_gradient(Real reset, Real update, Real candidate,
                                                                      Real candidate_hidden, Real hidden,
                                                                      Real grad_next) {
  const Real grad_candidate_sum =
      grad_next * (Real(1) - update) * kernels::tanh_derivative_from_output(candidate);
  const Real grad_update = grad_next * (hidden - candidate);
  const Real grad_reset = grad_candidate_sum * candidate_hidden;
  return {grad_reset * kernels::sigmoid_derivative_from_output(reset),
          grad_update * kernels::sigmoid_derivative_from_output(update), grad_candidate_sum,
          grad_candidate_sum * reset, grad_next * update};
}

}  // namespace twinbench::energy_flow::energy_carrier

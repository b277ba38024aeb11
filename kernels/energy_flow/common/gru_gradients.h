// Gradients of the energy carrier's gated recurrent unit (C07, C17), one channel of one flow. Host and device. In the
// namespace of the component that specifies it; the whole backward pass takes it too.
#pragma once

#include "kernels/energy_flow/common/gru.h"

namespace twinbench::energy_flow::energy_carrier {

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

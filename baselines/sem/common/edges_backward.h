// The gradient of a Cayley step's parameters as plain ATen has it (sem C06, C02): edges scale by scale.
#pragma once

#include <vector>

#include "baselines/sem/common/conjugate_gradients.h"

namespace twinbench::sem {

struct EdgeGradients {
  at::Tensor theta, mix;
};

// z: the adjoint solution; y: the step's result and its input, added. `mix`: that of the scales, as given.
inline EdgeGradients edges_backward(const ConjugateGradients& solver, double half_step, const at::Tensor& mix,
                                    const Field& z, const Field& y) {
  const at::Tensor shares = at::softmax(mix, 0);
  std::vector<at::Tensor> of_theta, of_shares;
  for (std::size_t scale = 0; scale < solver.scales().size(); ++scale) {
    const auto& [theta, first, second] = solver.scales()[scale];
    const auto across = [&](const at::Tensor& v) {
      return at::sub(at::index_select(v, 1, first), at::index_select(v, 1, second));
    };
    const at::Tensor terms = at::sub(at::mul(across(z.re), across(y.im)), at::mul(across(z.im), across(y.re)));
    const at::Tensor gradient = at::mul(at::sum(terms, {0}), half_step);
    const at::Tensor share = shares.select(0, static_cast<std::int64_t>(scale));
    of_theta.push_back(at::mul(at::mul(gradient, share), at::sigmoid(theta)));
    of_shares.push_back(at::sum(at::mul(gradient, at::softplus(theta)), {0}, true));
  }
  const at::Tensor of_all = at::cat(of_shares);
  return {at::cat(of_theta), at::mul(shares, at::sub(of_all, at::sum(at::mul(shares, of_all))))};
}

}  // namespace twinbench::sem

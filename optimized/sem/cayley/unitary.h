// What set-up computes from the parameters, once for as long as they stay (sem 7.1): the unitary matrix of the step.
#pragma once

#include <ATen/ATen.h>

#include "optimized/sem/common/edge_factors.h"
#include "src/component.h"
#include "src/sem/common/graph.h"

namespace twinbench::sem::cayley {

// U = (I - iK)^2 (I + K^2)^-1 with K = dt/2 H, symmetric, in fp64 [dim, dim]; NaN everywhere where I + K^2 could not be
// factorised, which a run then finds in every row.
struct Unitary {
  at::Tensor re, im;
};

inline Unitary unitary_of(const NamedTensors& inputs, const Setting& setting) {
  const std::int64_t dim = setting.size("dim");
  const at::Tensor weights = at::softplus(inputs["theta"].to(at::kDouble)) *
                             at::softmax(inputs["mix"].to(at::kDouble), 0).index_select(0, scales_of_edges(inputs));
  const at::Tensor first = inputs["nodes"].select(1, 0), second = inputs["nodes"].select(1, 1);
  const at::Tensor one = at::eye(dim, weights.options());
  at::Tensor hamiltonian = at::zeros({dim, dim}, weights.options());
  for (const auto& [row, column, sign] :
       {std::tuple{first, first, 1}, {second, second, 1}, {first, second, -1}, {second, first, -1}})
    hamiltonian.view({-1}).index_add_(0, row * dim + column, weights, sign);
  const at::Tensor shift = hamiltonian.mul_(setting.option("dt") / 2);
  const auto [factor, info] = at::linalg_cholesky_ex(one + at::mm(shift, shift));
  const at::Tensor inverse = at::cholesky_inverse(factor);
  const auto symmetric = [&, failed = info.ne(0)](const at::Tensor& matrix) {
    return ((matrix + matrix.t()) / 2).masked_fill_(failed, std::numeric_limits<double>::quiet_NaN());
  };
  return {symmetric(2 * inverse - one), symmetric(at::mm(shift, inverse) * -2)};
}

// [2 dim, 2 dim]: rows of real, then imaginary parts times this are the real, then the imaginary parts of the products.
inline at::Tensor stacked(const at::Tensor& re, const at::Tensor& im, at::ScalarType type) {
  return at::cat({at::cat({re, im}, 1), at::cat({-im, re}, 1)}, 0).to(type).contiguous();
}

}  // namespace twinbench::sem::cayley

// dt/2 H folded at set-up (sem C02): all scales in one matrix, by its rows, for as long as the parameters stay.
#pragma once

#include <ATen/ATen.h>

#include "kernels/sem/lazy_gate/arguments.h"
#include "optimized/common/tensors.h"
#include "src/component.h"
#include "src/sem/common/graph.h"

namespace twinbench::sem::lazy_gate {

// Computed in fp64 and rounded once. Edges that join the same two nodes add up.
class FoldedGraph {
 public:
  FoldedGraph(const NamedTensors& inputs, const Setting& setting) {
    const std::int64_t dim = setting.size("dim");
    check_graph(inputs["nodes"], inputs["starts"], dim);
    const at::Tensor scale = at::repeat_interleave(inputs["starts"].diff());
    const at::Tensor weights = at::softplus(inputs["theta"].to(at::kDouble)) *
                               at::softmax(inputs["mix"].to(at::kDouble), 0).index_select(0, scale) *
                               (setting.option("dt") / 2);
    const at::Tensor first = inputs["nodes"].select(1, 0), second = inputs["nodes"].select(1, 1);
    const at::Tensor rows = at::cat({first, second}), columns = at::cat({second, first});
    const at::Tensor both = at::cat({weights, weights});
    const at::Tensor apart = rows.ne(columns);  // an edge from a node to itself moves nothing
    const auto [places, inverse, counts] = at::_unique2(rows.mul(dim).add(columns).masked_select(apart), true, true);
    const at::Tensor sums =
        at::zeros({places.size(0)}, both.options()).index_add(0, inverse, both.masked_select(apart));
    const at::Tensor row_of_place = places.floor_divide(dim);
    diagonal_ = at::zeros({dim}, both.options()).index_add(0, row_of_place, sums).to(at::kFloat);
    begins_ = at::searchsorted(row_of_place.contiguous(), at::arange(dim + 1, places.options())).to(at::kInt);
    neighbours_ = places.remainder(dim).to(at::kInt).contiguous();
    weights_ = sums.to(at::kFloat).contiguous();
  }

  Graph graph() const {
    return {.diagonal = diagonal_.const_data_ptr<float>(),
            .begins = begins_.const_data_ptr<std::int32_t>(),
            .neighbours = neighbours_.const_data_ptr<std::int32_t>(),
            .weights = weights_.const_data_ptr<float>()};
  }

 private:
  at::Tensor diagonal_, begins_, neighbours_, weights_;
};

inline StopRule rule_of(const Setting& setting) {
  return {.tolerance = static_cast<float>(setting.option("tolerance")),
          .gate_tolerance = setting.on("lazy_cg") ? static_cast<float>(setting.option("lazy_cg_tol")) : 0.0f,
          .most_iterations = static_cast<int>(setting.option("most_iterations"))};
}

}  // namespace twinbench::sem::lazy_gate

// dt/2 H folded at set-up (sem C02): all scales in one matrix, by its rows, for as long as the parameters stay.
#pragma once

#include <ATen/ATen.h>

#include "kernels/sem/lazy_gate/arguments.h"
#include "optimized/common/tensors.h"
#include "src/component.h"
#include "src/sem/common/graph.h"

namespace twinbench::sem::lazy_gate {

// Computed in fp64 and rounded once. Edges that join the same two nodes add up. A node's neighbours lie one after the
// other.
struct FoldedGraph {
  at::Tensor diagonal;             // fp32 [dim], sums of the nodes' weights
  at::Tensor begins;               // int32 [dim + 1]
  at::Tensor neighbours, weights;  // int32, fp32 [begins[dim]]

  FoldedGraph(const NamedTensors& inputs, const Setting& setting) {
    const std::int64_t dim = setting.size("dim");
    const at::Tensor scale = at::repeat_interleave(inputs["starts"].diff());
    const at::Tensor of_edges = at::softplus(inputs["theta"].to(at::kDouble)) *
                                at::softmax(inputs["mix"].to(at::kDouble), 0).index_select(0, scale) *
                                (setting.option("dt") / 2);
    const at::Tensor first = inputs["nodes"].select(1, 0), second = inputs["nodes"].select(1, 1);
    const at::Tensor rows = at::cat({first, second}), columns = at::cat({second, first});
    const at::Tensor both = at::cat({of_edges, of_edges});
    const at::Tensor apart = rows.ne(columns);  // an edge from a node to itself moves nothing
    const auto [places, inverse, counts] = at::_unique2(rows.mul(dim).add(columns).masked_select(apart), true, true);
    const at::Tensor sums =
        at::zeros({places.size(0)}, both.options()).index_add(0, inverse, both.masked_select(apart));
    const at::Tensor row_of_place = places.floor_divide(dim);
    diagonal = at::zeros({dim}, both.options()).index_add(0, row_of_place, sums).to(at::kFloat);
    begins = at::searchsorted(row_of_place.contiguous(), at::arange(dim + 1, places.options())).to(at::kInt);
    neighbours = places.remainder(dim).to(at::kInt).contiguous();
    weights = sums.to(at::kFloat).contiguous();
  }
};

// The same as the kernels' warps read it (arguments.h).
class SlicedGraph {
 public:
  explicit SlicedGraph(const FoldedGraph& folded) : diagonal_(folded.diagonal) {
    const at::Tensor begins = folded.begins.to(at::kLong), numbers = begins.diff();
    const std::int64_t dim = numbers.size(0), slices = (dim + kSlice - 1) / kSlice;
    const at::Tensor widths = at::constant_pad_nd(numbers, {0, slices * kSlice - dim}).view({slices, kSlice}).amax(1);
    const at::Tensor ends = widths.mul(kSlice).cumsum(0), starts = ends - widths.mul(kSlice);
    const at::Tensor node = at::repeat_interleave(numbers);
    const at::Tensor number = at::arange(node.size(0), node.options()) - begins.index_select(0, node);
    const at::Tensor place =
        starts.index_select(0, node.floor_divide(kSlice)) + number * kSlice + node.remainder(kSlice);
    entries_ = at::zeros({ends.select(0, slices - 1).item<std::int64_t>(), 2}, folded.neighbours.options());
    entries_.index_put_({place}, at::stack({folded.neighbours, folded.weights.view(at::kInt)}, 1));
    neighbours_ = numbers.to(at::kInt);
    slices_ = starts.to(at::kInt);
  }

  Graph graph() const {
    return {.diagonal = diagonal_.const_data_ptr<float>(),
            .neighbours = neighbours_.const_data_ptr<std::int32_t>(),
            .slices = slices_.const_data_ptr<std::int32_t>(),
            .entries = entries_.const_data_ptr<std::int32_t>()};
  }

 private:
  at::Tensor diagonal_, neighbours_, slices_, entries_;
};

inline StopRule rule_of(const Setting& setting) {
  return {.tolerance = static_cast<float>(setting.option("tolerance")),
          .gate_tolerance = setting.on("lazy_cg") ? static_cast<float>(setting.option("lazy_cg_tol")) : 0.0f,
          .most_iterations = static_cast<int>(setting.option("most_iterations"))};
}

// int32 [kCounts, calls]; `results`, of either pass, get their share of it.
inline at::Tensor counts_of(const Setting& setting, NamedTensors& results) {
  const at::Tensor counts =
      at::zeros({kCounts, setting.size("calls")}, at::TensorOptions(setting.device).dtype(at::kInt));
  for (const auto& [name, what] : {std::pair{"skipped", kSkipped},
                                   {"gate_evaluations", kGateEvaluations},
                                   {"row_iterations", kRowIterations},
                                   {"discarded_rows", kDiscardedRows},
                                   {"unconverged_rows", kUnconvergedRows}})
    results.set(name, counts.select(0, what));
  results.set("iterations", counts.narrow(0, kIterations, 2));
  if (!setting.backward()) results.set("nonfinite_rows", counts.select(0, kNonfiniteRows));
  return counts;
}

}  // namespace twinbench::sem::lazy_gate

// The graph of a multi-scale Hamiltonian (sem C01, C02): its edges at the documented sparsities, and checks of given
// ones.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/common/error.h"

namespace twinbench::sem {

using Edge = std::pair<std::int64_t, std::int64_t>;  // the smaller node first

// Rings of half-width max(1, sparsity / 2), merged and sorted. An even sparsity leaves no random edge (C01, finding).
inline std::vector<Edge> ring_edges(std::int64_t nodes, std::int64_t sparsity) {
  std::set<Edge> edges;
  for (std::int64_t node = 0; node < nodes; ++node)
    for (std::int64_t offset = 1; offset <= std::max<std::int64_t>(1, sparsity / 2); ++offset) {
      const std::int64_t other = (node + offset) % nodes;
      if (node != other) edges.insert(std::minmax(node, other));
    }
  return {edges.begin(), edges.end()};
}

// `edges` of them in `scales` scales, whose half-widths double from each to the next, starting from the least that
// offers so many; at sizes where the rings have exactly so many, these. Where even the whole graph has too few, edges
// come twice: their weights add up.
struct ScaledEdges {
  std::vector<Edge> list;            // scale after scale
  std::vector<std::int64_t> starts;  // [scales + 1]
};
inline ScaledEdges scaled_edges(std::int64_t nodes, std::int64_t scales, std::int64_t edges) {
  std::vector<std::vector<Edge>> rings;
  for (std::int64_t sparsity = 2;; sparsity += 2) {
    rings.clear();
    std::int64_t offered = 0;
    for (std::int64_t scale = 0; scale < scales; ++scale) {
      rings.push_back(ring_edges(nodes, sparsity << scale));
      offered += static_cast<std::int64_t>(rings.back().size());
    }
    if (offered >= edges || sparsity > nodes) break;
  }
  ScaledEdges graph;
  for (std::int64_t scale = 0; scale < scales; ++scale) {
    graph.starts.push_back(static_cast<std::int64_t>(graph.list.size()));
    const auto& ring = rings[static_cast<std::size_t>(scale)];
    const std::int64_t left = edges - graph.starts.back(),
                       count = scale + 1 == scales ? left : std::min<std::int64_t>(left, std::ssize(ring));
    for (std::int64_t i = 0; i < count; ++i)
      graph.list.push_back(ring.empty() ? Edge{0, 0} : ring[static_cast<std::size_t>(i % std::ssize(ring))]);
  }
  graph.starts.push_back(edges);
  return graph;
}

// int64 [edges, 2] and [scales + 1]: numbers of nodes, and where each scale's edges begin. Throws kOutOfRange naming
// tensor, value and remedy.
inline void check_graph(const at::Tensor& nodes, const at::Tensor& starts, std::int64_t dim) {
  const at::Tensor list = nodes.cpu().contiguous(), begins = starts.cpu().contiguous();
  for (std::int64_t i = 0; i < list.numel(); ++i)
    if (const auto node = list.const_data_ptr<std::int64_t>()[i]; node < 0 || node >= dim)
      throw Error(ErrorKind::kOutOfRange, "nodes", std::to_string(node),
                  "there are " + std::to_string(dim) + " nodes, the first one is 0");
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < begins.numel(); ++i) {
    const auto start = begins.const_data_ptr<std::int64_t>()[i];
    if (start < before || (i == 0 && start != 0) || (i + 1 == begins.numel() && start != nodes.size(0)))
      throw Error(ErrorKind::kOutOfRange, "starts", std::to_string(start),
                  "rising from 0 to the " + std::to_string(nodes.size(0)) + " edges");
    before = start;
  }
}

}  // namespace twinbench::sem

// What the specifications over a sparse Hamiltonian (sem C01, C02) share: its graph among the inputs, which graphs are
// refused, and what one application dispatches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "src/component.h"
#include "src/sem/common/graph.h"

namespace twinbench::sem {

// Fills "nodes" and "starts" as the sizes dim, scales and edges ask, and sets "theta" where a node alone has no edge:
// those that must be there weigh nothing.
inline void write_graph(NamedTensors& inputs, const Setting& setting) {
  const ScaledEdges graph = scaled_edges(setting.size("dim"), setting.size("scales"), setting.size("edges"));
  auto* pair = inputs["nodes"].mutable_data_ptr<std::int64_t>();
  for (const Edge& edge : graph.list) {
    std::tie(pair[0], pair[1]) = edge;
    pair += 2;
  }
  std::copy(graph.starts.begin(), graph.starts.end(), inputs["starts"].mutable_data_ptr<std::int64_t>());
  if (setting.size("dim") == 1) inputs["theta"].fill_(-100);
}

// Spreads "theta" as the options wild_weights and huge_weights say: softplus(x) is x up at twenty.
inline void spread_weights(NamedTensors& inputs, const Setting& setting) {
  if (setting.on("wild_weights")) inputs["theta"].mul_(100);
  if (setting.on("huge_weights")) inputs["theta"].mul_(10).add_(20);
}

inline std::vector<Refusal> graph_refusals() {
  return {{"a node that is not there",
           [](NamedTensors& inputs, Setting& setting) {
             inputs["nodes"].mutable_data_ptr<std::int64_t>()[0] = setting.size("dim");
           },
           ErrorKind::kOutOfRange, "nodes"},
          {"scales that overlap",
           [](NamedTensors& inputs, Setting&) { inputs["starts"].mutable_data_ptr<std::int64_t>()[0] = 1; },
           ErrorKind::kOutOfRange, "starts"}};
}

// H once: per scale and part 13 operators (C03's eight passes: softplus, two times zeros, two sums of weights, twice a
// selection, a product and a sum, and two for the diagonal), their scaling and sum; the mix' shares once.
inline std::int64_t apply_dispatches(const Setting& setting) { return 2 * (15 * setting.size("scales") - 1) + 1; }

}  // namespace twinbench::sem

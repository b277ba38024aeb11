// energy_flow.embedding_mapper (C04): teacher embeddings to one scalar energy for every surface cell.
#include <ATen/ATen.h>

#include <limits>

#include "src/operand_bytes.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

Signature signature() {
  const Tolerance surface{Tolerance::Kind::kBound, {2e-5, 1e-5}, {3e-2, 1e-2}, "C04", {2e-5, 2e-6}, {1e-2, 4e-3}};
  // Gains, shifts, scale and offset start at 1 and 0 in training; here they are spread, so that dropping one shows.
  return {
      .derived = {{"cells", Expression("width * height")},
                  {"middle", Expression("2 * cells"), true},
                  {"inner", Expression("max(embedding / 2, 2 * cells)"), true}},
      .inputs = {data("embedding", "rows, embedding", from_case(1)),
                 weight("weight_1", "inner, embedding", fan_in(2, "embedding")),
                 bias("bias_1", "inner", fan_in(3, "embedding")), gain("gain_1", "inner", normal(4, 0.1)).shifted(1),
                 bias("shift_1", "inner", normal(5, 0.1)), weight("weight_2", "middle, inner", fan_in(6, "inner")),
                 bias("bias_2", "middle", fan_in(7, "inner")), gain("gain_2", "middle", normal(8, 0.1)).shifted(1),
                 bias("shift_2", "middle", normal(9, 0.1)), weight("weight_3", "cells, middle", fan_in(10, "middle")),
                 bias("bias_3", "cells", fan_in(11, "middle")), gain("scale", "1", normal(12, 0.1)).shifted(1),
                 bias("offset", "1", normal(13, 0.1)), bias("cell_offset", "height, width", normal(14, 0.02))},
      .outputs = {output("surface", "rows, cells", surface).with_nan().with_gradient(15)},
      .gradient = {Tolerance::Kind::kGradient, {1e-4, 0}, {5e-2, 0}, "grad", {2e-5, 2e-6}, {1e-2, 0}},
  };
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  constexpr double kBad[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()};
  const std::int64_t embedding = setting.size("embedding");
  for (std::int64_t row = 0; setting.on("non_finite") && row < setting.size("rows"); row += 3)
    inputs["embedding"][row][row * 5 % embedding].fill_(kBad[row / 3 % 3]);
}

Cost cost(const Setting& setting) {
  const auto [rows, embedding, cells, middle, inner] =
      real_sizes<5>(setting, {"rows", "embedding", "cells", "middle", "inner"});
  const double products = embedding * inner + inner * middle + middle * cells;  // multiply-adds of one row
  const double others = 3 * inner + 3 * middle + 2 * cells + 2, weights = operand_bytes(setting) * products;
  if (!setting.backward()) return {weights + 4 * (others + rows * (embedding + cells)), 2 * rows * products};
  // Reads weights, embeddings and the surface's gradient; writes a gradient of every weight and embedding.
  return {weights + 4 * (products + 2 * others + rows * (2 * embedding + cells)), 6 * rows * products};
}

// Ten operators a row and one concatenation. The tape adds 20 operators a row, and 13 additions for each row but the
// first; without a row it still asks for 14 zero gradients.
std::int64_t baseline_dispatches(const Setting& setting) {
  const std::int64_t rows = setting.size("rows");
  if (!setting.backward()) return rows == 0 ? 0 : 10 * rows + 1;
  return rows == 0 ? 14 : 43 * rows - 11;
}

std::int64_t optimized_dispatches(const Setting& setting) {
  if (setting.size("rows") == 0) return 0;
  const std::int64_t forward = setting.device.is_cpu() ? 0 : 3;  // on the CPU the forward products are our own loops
  return setting.backward() ? forward + 6 : forward;
}

std::string beyond_scale(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  if (setting.backward() || outputs["surface"].numel() == 0) return "";
  const at::Tensor center = inputs["offset"].add(inputs["cell_offset"].reshape({1, -1}));
  const at::Tensor numbers = inputs["embedding"].isfinite().all(1);  // what is NaN lies nowhere
  const at::Tensor apart = outputs["surface"].sub(center).abs().index({numbers});
  const double distance = apart.numel() == 0 ? 0 : apart.max().item<double>();
  const double limit = inputs["scale"].abs().item<double>();
  if (distance <= limit * (1 + 1e-5) + 1e-5) return "";
  return "a cell lies " + std::to_string(distance) + " away, limit " + std::to_string(limit);
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.proof = {{"dispatches", "", baseline_dispatches, optimized_dispatches}};
  spec.cost = cost;
  // The specification's 6, and in bf16 mode the kernel that rounds the embeddings.
  spec.most_launches = [](const Setting& s) { return s.dtype == Dtype::kBf16 ? 7 : 6; };
  spec.invariants = {{"each cell lies within |scale| of offset + its own offset", beyond_scale}};
  return spec;
}

}  // namespace twinbench::energy_flow::embedding_mapper

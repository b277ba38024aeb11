// energy_flow.embedding_mapper (C04): teacher embeddings to one scalar energy for every surface cell.
#include <ATen/ATen.h>

#include "src/operand_bytes.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

Signature signature() {
  const Tolerance surface{Tolerance::Kind::kBound, {2e-5, 1e-5}, {3e-2, 1e-2}, "C04"};
  // Gains, shifts, scale and offset start at 1 and 0 in training; here they are spread, so that dropping one shows.
  return {
      .sizes = {{"rows", 0}, {"embedding", 1, 1 << 16}, {"width", 1, 1024}, {"height", 1, 1024}},
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
      .outputs = {output("surface", "rows, cells", surface).with_gradient(15)},
  };
}

Case shaped(std::string name, std::int64_t rows, std::int64_t embedding, std::int64_t width, std::int64_t height) {
  return sized_case(std::move(name), {{"rows", rows}, {"embedding", embedding}, {"width", width}, {"height", height}});
}

std::vector<Case> cases() {
  return {
      shaped("tiny", 3, 4, 2, 2),
      shaped("unit", 4, 32, 8, 8),
      shaped("odd", 7, 37, 5, 3),
      shaped("wide_embedding", 5, 131, 3, 2),  // half the embedding, not the surface, sets the inner width
      shaped("tile_plus", 17, 33, 5, 13),
      shaped("one", 1, 32, 8, 8),
      degenerate(shaped("empty", 0, 32, 8, 8)),
      distributed(shaped("", 16, 32, 8, 8), "uniform"),
      degenerate(distributed(shaped("", 4, 32, 8, 8), "zeros")),
      distributed(shaped("", 16, 32, 8, 8), "heavy_tail"),
      distributed(shaped("", 16, 32, 8, 8), "adversarial"),
      timed(shaped("debug", 8, 768, 20, 20)),
      timed(shaped("train", 16, 768, 28, 28)),
      timed(shaped("stress", 16, 768, 50, 50)),  // 41 million parameters, D0's surface
      backward(shaped("tiny", 3, 4, 2, 2)),
      backward(shaped("odd", 7, 37, 5, 3)),
      backward(shaped("one", 1, 32, 8, 8)),
      degenerate(backward(shaped("empty", 0, 32, 8, 8))),
      backward(distributed(shaped("", 16, 32, 8, 8), "adversarial")),
      timed(backward(shaped("debug", 8, 768, 20, 20))),
  };
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
  const double distance = outputs["surface"].sub(center).abs().max().item<double>();
  const double limit = inputs["scale"].abs().item<double>();
  if (distance <= limit * (1 + 1e-5) + 1e-5) return "";
  return "a cell lies " + std::to_string(distance) + " away, limit " + std::to_string(limit);
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.summary = "Teacher embeddings through a three-layer perceptron to one energy per surface cell.";
  spec.source = "energy_flow C04";
  spec.sin =
      "sample by sample: ten operators and their temporaries for every row, and all weights read again each time";
  spec.dtypes = {Dtype::kFp32, Dtype::kBf16};
  spec.signature = signature();
  spec.batch_size = "rows";
  spec.cases = cases();
  spec.proof = {
      {"dispatches",
       "baseline: forward 10 * rows + 1, 2 x (linear, GELU, LayerNorm), linear, tanh, scale and offset, cell offset, "
       "one "
       "concatenation; backward 43 * rows - 11. optimized: none, and 6 matrix products in the backward pass; on CUDA "
       "3 more, the forward products",
       baseline_dispatches, optimized_dispatches}};
  spec.cost = cost;
  // The specification's 6, and in bf16 mode the kernel that rounds the embeddings.
  spec.most_launches = [](const Setting& s) { return s.dtype == Dtype::kBf16 ? 7 : 6; };
  spec.claims = {{"D0", "the mapper (768 to 2 500) takes about 0.1 ms and runs in parallel", "0.1 ms", std::nullopt,
                  "ok: 165.5 MB of weights take 92 us at 1.8 TB/s; memory-bound, not parallel work"}};
  spec.invariants = {{"each cell lies within |scale| of offset + its own offset", beyond_scale}};
  return spec;
}

}  // namespace twinbench::energy_flow::embedding_mapper

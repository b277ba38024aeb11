// energy_flow.embedding_mapper (C04): teacher embeddings to one scalar energy for every surface cell.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "src/draws.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

using draws::drawn;
using draws::fan_in_uniform;
using draws::literal;
using draws::normal;
using draws::toy_bias;
using draws::toy_weight;

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

struct Shape {
  std::int64_t rows, embedding, cells, middle, inner;  // middle 2S, inner max(E/2, 2S)
};

Shape shape_of(const Setting& setting) {
  const std::int64_t embedding = setting.size("embedding"), cells = setting.size("width") * setting.size("height");
  return {setting.size("rows"), embedding, cells, 2 * cells, std::max(embedding / 2, 2 * cells)};
}

NamedTensors make_inputs(const Setting& setting, std::uint64_t seed) {
  const Shape s = shape_of(setting);
  // Gains, shifts, scale and offset start at 1 and 0 in training; here they are spread, so that dropping one shows.
  NamedTensors inputs{
      {"embedding", drawn(setting.input_case.distribution, {s.rows, s.embedding}, seed, 1)},
      {"weight_1", fan_in_uniform({s.inner, s.embedding}, s.embedding, seed, 2)},
      {"bias_1", fan_in_uniform({s.inner}, s.embedding, seed, 3)},
      {"gain_1", normal({s.inner}, seed, 4, 0.1).add_(1.0)},
      {"shift_1", normal({s.inner}, seed, 5, 0.1)},
      {"weight_2", fan_in_uniform({s.middle, s.inner}, s.inner, seed, 6)},
      {"bias_2", fan_in_uniform({s.middle}, s.inner, seed, 7)},
      {"gain_2", normal({s.middle}, seed, 8, 0.1).add_(1.0)},
      {"shift_2", normal({s.middle}, seed, 9, 0.1)},
      {"weight_3", fan_in_uniform({s.cells, s.middle}, s.middle, seed, 10)},
      {"bias_3", fan_in_uniform({s.cells}, s.middle, seed, 11)},
      {"scale", normal({1}, seed, 12, 0.1).add_(1.0)},
      {"offset", normal({1}, seed, 13, 0.1)},
      {"cell_offset", normal({setting.size("height"), setting.size("width")}, seed, 14, 0.02)},
  };
  if (setting.input_case.pass == Pass::kBackward) inputs.set("grad_surface", drawn("normal", {s.rows, s.cells}, seed, 15));
  return inputs;
}

// Worked example of C04: both of its rows, or one of them alone.
Golden toy_golden(const std::string& name, at::Tensor embedding, at::Tensor surface) {
  Setting setting;
  setting.input_case = shaped(name, embedding.size(0), 4, 2, 2);
  return {name,
          setting,
          {{"embedding", std::move(embedding)},
           {"weight_1", toy_weight(8, 4, 1)},
           {"bias_1", toy_bias(8, 1)},
           {"gain_1", at::ones({8})},
           {"shift_1", at::zeros({8})},
           {"weight_2", toy_weight(8, 8, 2)},
           {"bias_2", toy_bias(8, 2)},
           {"gain_2", at::ones({8})},
           {"shift_2", at::zeros({8})},
           {"weight_3", toy_weight(4, 8, 3)},
           {"bias_3", toy_bias(4, 3)},
           {"scale", at::ones({1})},
           {"offset", at::zeros({1})},
           {"cell_offset", literal({2, 2}, {-0.015, -0.005, 0.005, 0.015})}},
          {{"surface", std::move(surface)}}};
}

Cost cost(const Setting& setting) {
  const Shape s = shape_of(setting);
  const auto rows = static_cast<double>(s.rows), embedding = static_cast<double>(s.embedding);
  const auto cells = static_cast<double>(s.cells), middle = static_cast<double>(s.middle), inner = static_cast<double>(s.inner);
  const double products = embedding * inner + inner * middle + middle * cells;  // multiply-adds of one row
  const double parameters = products + 3 * inner + 3 * middle + 2 * cells + 2;
  if (setting.input_case.pass == Pass::kForward) return {4 * (parameters + rows * (embedding + cells)), 2 * rows * products};
  // Reads weights, embeddings and the surface's gradient; writes a gradient of every weight and embedding.
  return {4 * (2 * parameters + rows * (2 * embedding + cells)), 6 * rows * products};
}

// Ten operators a row and one concatenation. The tape adds 20 operators a row, and 13 additions for each row but the
// first; without a row it still asks for 14 zero gradients.
std::int64_t baseline_dispatches(const Setting& setting) {
  const std::int64_t rows = setting.size("rows");
  if (setting.input_case.pass == Pass::kForward) return rows == 0 ? 0 : 10 * rows + 1;
  return rows == 0 ? 14 : 43 * rows - 11;
}

std::int64_t optimized_dispatches(const Setting& setting) {
  if (setting.size("rows") == 0) return 0;
  const std::int64_t forward = setting.device.is_cpu() ? 0 : 3;  // on the CPU the forward products are our own loops
  return setting.input_case.pass == Pass::kForward ? forward : forward + 6;
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.pipeline = "energy_flow";
  spec.name = "embedding_mapper";
  spec.summary = "Teacher embeddings through a three-layer perceptron to one energy per surface cell.";
  spec.source = "energy_flow C04";
  spec.sin = "sample by sample: ten operators and their temporaries for every row, and all weights read again each time";
  spec.dtypes = {Dtype::kFp32, Dtype::kBf16};
  spec.cases = cases();
  spec.make_inputs = make_inputs;

  const Tolerance forward{Tolerance::Kind::kBound, {2e-5, 1e-5}, {3e-2, 1e-2}, "C04"};
  const Tolerance gradient{Tolerance::Kind::kGradient, {1e-4, 0}, {5e-2, 0}, "grad"};
  spec.outputs = {{"surface", forward, 0, false}};
  spec.gradients = {{"grad_embedding", gradient, 0, false}};
  for (const char* name : {"weight_1", "bias_1", "gain_1", "shift_1", "weight_2", "bias_2", "gain_2", "shift_2",
                           "weight_3", "bias_3", "scale", "offset", "cell_offset"})
    spec.gradients.push_back({std::string("grad_") + name, gradient, std::nullopt, false});
  spec.batched_inputs = {{"embedding", 0}, {"grad_surface", 0}};
  spec.batch_size = "rows";

  spec.proof = {
      {"dispatches",
       "baseline: forward 10 * rows + 1, 2 x (linear, GELU, LayerNorm), linear, tanh, scale and offset, cell offset, one "
       "concatenation; backward 43 * rows - 11. optimized: none, and 6 matrix products in the backward pass; on CUDA 3 more, the forward products",
       baseline_dispatches, optimized_dispatches},
  };
  spec.cost = cost;
  spec.claims = {
      {"D0", "the mapper (768 to 2 500) takes about 0.1 ms and runs in parallel", "0.1 ms", std::nullopt,
       "ok: 165.5 MB of weights take 92 us at 1.8 TB/s; memory-bound, not parallel work"},
  };
  spec.goldens = {
      [] {
        return toy_golden("C04_x", literal({1, 4}, {0.5, -1, 0.25, 2}),
                          literal({1, 4}, {-0.96577987, 0.94287429, -0.45092188, -0.93074377}));
      },
      [] {
        return toy_golden("C04_x_and_y", literal({2, 4}, {0.5, -1, 0.25, 2, 1, 0, -0.5, 0.5}),
                          literal({2, 4}, {-0.96577987, 0.94287429, -0.45092188, -0.93074377, -0.79618088, 0.96471058,
                                           -0.41326090, -0.74591852}));
      },
  };
  spec.invariants = {
      {"each cell lies within |scale| of offset + its own offset",
       [](const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) -> std::string {
         if (setting.input_case.pass == Pass::kBackward || outputs["surface"].numel() == 0) return "";
         const at::Tensor center = inputs["offset"].add(inputs["cell_offset"].reshape({1, -1}));
         const double distance = outputs["surface"].sub(center).abs().max().item<double>();
         const double limit = inputs["scale"].abs().item<double>();
         if (distance <= limit * (1 + 1e-5) + 1e-5) return "";
         return "a cell lies " + std::to_string(distance) + " away, limit " + std::to_string(limit);
       }},
  };
  return spec;
}

}  // namespace twinbench::energy_flow::embedding_mapper

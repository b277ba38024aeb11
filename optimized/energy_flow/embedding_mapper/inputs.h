// Checks the embedding mapper's inputs and prepares its weights for the CPU and CUDA paths, once, in their constructors.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "src/tensor_checks.h"

namespace twinbench::energy_flow::embedding_mapper {

struct MapperInputs {
  bool round = false, backward = false;
  std::int64_t rows = 0, embedding = 0, inner = 0, middle = 0, cells = 0;  // cells = S, middle = 2S, inner = max(E/2, 2S)
  at::Tensor x;                                                            // [rows, embedding], any strides
  at::Tensor grad_surface;                                                 // [rows, cells], any strides; backward only
  // All contiguous; matrices [out, in], rounded to bf16 in that mode.
  at::Tensor weight_1, bias_1, gain_1, shift_1, weight_2, bias_2, gain_2, shift_2, weight_3, bias_3;
  at::Tensor scale, offset, cell_offset;  // [1], [1], [cells]
};

// Throws kBadShape, kBadDtype or (where the embedding's width is not the weights') kDimensionMismatch.
inline MapperInputs mapper_inputs(const NamedTensors& inputs, const Setting& setting) {
  MapperInputs m;
  m.round = setting.dtype == Dtype::kBf16;
  m.backward = setting.input_case.pass == Pass::kBackward;
  for (const char* name : {"embedding", "weight_1", "weight_2", "weight_3"}) expect_rank(inputs, name, 2);
  m.inner = inputs["weight_1"].size(0);
  m.middle = inputs["weight_2"].size(0);
  m.cells = inputs["weight_3"].size(0);
  const at::ScalarType dtype = floating_type(setting.dtype);
  const auto checked = [&](const char* name, at::IntArrayRef shape) -> const at::Tensor& {
    expect_tensor(inputs, name, shape, dtype);
    return inputs[name];
  };
  const auto matrix = [&](const char* name, std::int64_t out, std::int64_t in) {
    const at::Tensor& weight = checked(name, {out, in});
    return m.round ? weight.to(at::kBFloat16).to(at::kFloat).contiguous() : weight.contiguous();
  };
  m.embedding = inputs["weight_1"].size(1);
  if (inputs["embedding"].size(1) != m.embedding)
    throw Error(ErrorKind::kDimensionMismatch, "embedding", std::to_string(inputs["embedding"].size(1)),
                "the mapper was made for embeddings of width " + std::to_string(m.embedding));
  m.rows = inputs["embedding"].size(0);
  m.x = checked("embedding", {m.rows, m.embedding});
  m.weight_1 = matrix("weight_1", m.inner, m.embedding);
  m.weight_2 = matrix("weight_2", m.middle, m.inner);
  m.weight_3 = matrix("weight_3", m.cells, m.middle);
  m.bias_1 = checked("bias_1", {m.inner}).contiguous();
  m.gain_1 = checked("gain_1", {m.inner}).contiguous();
  m.shift_1 = checked("shift_1", {m.inner}).contiguous();
  m.bias_2 = checked("bias_2", {m.middle}).contiguous();
  m.gain_2 = checked("gain_2", {m.middle}).contiguous();
  m.shift_2 = checked("shift_2", {m.middle}).contiguous();
  m.bias_3 = checked("bias_3", {m.cells}).contiguous();
  m.scale = checked("scale", {1}).contiguous();
  m.offset = checked("offset", {1}).contiguous();
  const at::Tensor& grid = inputs["cell_offset"];  // [cells], or the surface's [height, width]
  m.cell_offset = checked("cell_offset", grid.numel() == m.cells ? grid.sizes() : at::IntArrayRef(m.cells)).reshape({-1}).contiguous();
  if (m.backward) m.grad_surface = checked("grad_surface", {m.rows, m.cells});
  return m;
}

}  // namespace twinbench::energy_flow::embedding_mapper

// What the specifications of whole passes share: the rules of flows' lives, how many steps these take, and what a step
// costs (C16, C17).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "src/inputs.h"
#include "src/operand_bytes.h"
#include "src/spec_parts.h"
#include "src/stored_states.h"

namespace twinbench::energy_flow {

inline std::vector<OptionSpec> life_options() {
  return {choice_option("spawn", {"off", "movement", "gate"}, "movement", "spawn_mode: what flows spawn by"),
          choice_option("boundary", {"reflect", "kill"}, "reflect",
                        "boundary_mode: what happens to a flow that leaves the lattice in x or y"),
          choice_option("on_stop", {"project", "drop"}, "project",
                        "what becomes of the active flows of a sample that stops"),
          choice_option("hidden_dtype", {"fp32", "bf16"}, "fp32",
                        "what hidden states are rounded to between steps; their gradients pass straight through"),
          choice_option("captured_steps", {"off", "if_quicker", "always"}, "off",
                        "whether the CUDA path starts each step as one recorded graph; if_quicker: where that is at "
                        "least 1.05 times as quick")};
}

// sample_key [samples], by the seed and the option first_key: anywhere in 32 bits.
inline void draw_sample_keys(NamedTensors& inputs, const Setting& s, std::uint64_t seed) {
  const at::Tensor& keys = inputs["sample_key"];
  auto* const key = keys.mutable_data_ptr<std::int64_t>();
  const std::int64_t first = static_cast<std::int64_t>(s.option("first_key")) + static_cast<std::int64_t>(seed % 1000);
  for (std::int64_t b = 0; b < keys.numel(); ++b) key[b] = first + 7 * b;
}

// How many steps all flows live, about: data decide. Children live as long as others.
inline double expected_flow_steps(const Setting& s) {
  const auto [samples, cells, quota, most] = real_sizes<4>(s, {"samples", "cells", "quota", "max_steps"});
  const double age = s.option("projection_age"), steps = age > 0 ? std::min(age, most) : most;
  return samples * std::min(cells, quota) * steps * (s.option("spawn") > 0 ? 0.75 : 0.5);
}

// At most: as many flows as there can be, in every step that they can live.
inline std::int64_t most_flow_steps(const Setting& s) {
  const auto age = static_cast<std::int64_t>(s.option("projection_age"));
  const std::int64_t steps = s.size("max_steps"), quota = s.size("quota");
  const std::int64_t flows = s.option("spawn") > 0 ? quota : std::min(s.size("cells"), quota);
  return s.size("samples") * flows * (age > 0 ? std::min(age, steps) : steps);
}

// Multiplications of one flow's way through neuron, recurrent layers and heads.
inline double products_of_flow_step(const Setting& s) {
  const auto [hidden, layers, features, width, energy, head] =
      real_sizes<6>(s, {"hidden", "layers", "features", "neuron_width", "energy_width", "head_width"});
  return 9 + width * (4 + width + features) + 3 * hidden * (features + 1 + (2 * layers - 1) * hidden) +
         hidden * (energy + head) + energy + 3 * head;
}

// Of all inputs and outputs, each moved once; weights as the mode's products may hold them.
inline double bytes_of_tensors(const Setting& s) {
  double bytes = 0;
  const auto add = [&](const auto& tensor, double each) {
    for (const std::int64_t extent : extents(tensor.shape, s)) each *= static_cast<double>(extent);
    bytes += each;
  };
  for (const InputSpec& input : inputs_of(*s.signature, s))
    add(input, input.role == Role::kWeight ? operand_bytes(s) : input.element == Element::kInt64 ? 8 : 4);
  for (const OutputSpec& output : outputs_of(*s.signature, s)) add(output, output.element == Element::kInt64 ? 8 : 4);
  return bytes;
}

// Samples in which a decision, or a gradient's kink, lies so close that rounding may decide it (specification 0.5). In
// modes that round, where few samples have none, single flows and what they may change are set aside instead: the
// baseline tells of its decisions by decided() of src/rounding.h.
inline at::Tensor within_margin(const NamedTensors& outputs, const Setting& s) {
  const at::Tensor& margin = outputs["margin"];
  return sets_decisions_aside(s) ? at::zeros_like(margin, at::kBool) : margin.lt(1e-5);
}

inline Setting with_option(Setting s, const std::string& option, double value) {
  s.input_case.options[option] = value;
  return s;
}

// Issued as graphs or launch by launch, the CUDA path's steps are the same.
inline Setting issued_otherwise(Setting s) {
  return s.device.takes_cuda_path() ? with_option(s, "captured_steps", s.option("captured_steps") > 0 ? 0 : 2) : s;
}

inline Refusal starts_on_a_plane() {
  return {"an output plane as start", [](NamedTensors&, Setting& s) { s = with_option(s, "depth", 1); },
          ErrorKind::kOutOfRange, "depth"};
}

}  // namespace twinbench::energy_flow

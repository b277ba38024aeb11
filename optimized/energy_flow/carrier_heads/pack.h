// What the carrier heads' CPU and CUDA paths share: settings of a step, packed weights, buffers of results and gradients.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/energy_flow/carrier_heads/arguments.h"
#include "src/energy_flow/carrier_heads/shape.h"

namespace twinbench::energy_flow::carrier_heads {

template <class Real>
HeadsRuleOf<Real> heads_rule(const HeadsOptions& o) {
  double scale = o.scale;
  if (o.global_step >= kWarmUp) {
    const double decays = std::floor(static_cast<double>(o.global_step - kWarmUp) / kInterval);
    scale = std::max(o.smallest_scale, o.scale * std::pow(kDecay, decays));
  }
  return {static_cast<Real>(scale), static_cast<Real>(o.noise), o.noise_on_z ? Real(1) : Real(0),
          static_cast<Real>(o.gate ? o.gate_threshold : o.movement_threshold), o.most_spawned, o.gate ? 1 : 0,
          {o.seed, o.attempt, o.step}};
}

// The first layers of all heads joined into one matrix; weights rounded to bf16 in that mode, and kept in fp32.
struct PackedHeads {
  HeadsShape shape;
  HeadsOptions options;
  HeadColumns columns;
  bool round = false;
  at::Tensor first_weight, first_bias;  // [all, hidden], [all]; zeros in the padding
  at::Tensor energy_out_weight, displacement_out_weight, gate_out_weight;
  at::Tensor out_bias;  // [5]: energy, displacement x y z, gate

  // Leading columns that the loss can reach; the spawn gate is not trained.
  std::int64_t trained() const { return columns.child() + (options.gate ? 1 : 0); }
};

// Rows of the joined layer are padded to a multiple of `alignment` columns.
inline PackedHeads pack_heads(const NamedTensors& inputs, const Setting& setting, std::int64_t alignment) {
  PackedHeads packed;
  packed.shape = checked_heads_shape(inputs, setting);
  packed.options = checked_heads_options(setting);
  packed.round = setting.dtype == Dtype::kBf16;
  const auto operand = [&](const at::Tensor& t) {
    return (packed.round ? t.to(at::kBFloat16).to(at::kFloat) : t).contiguous();
  };
  std::vector<at::Tensor> weights = {inputs["energy_hidden_weight"], inputs["displacement_hidden_weight"]};
  std::vector<at::Tensor> biases = {inputs["energy_hidden_bias"], inputs["displacement_hidden_bias"]};
  if (packed.options.gate) {
    weights.insert(weights.end(), {inputs["child_weight"], inputs["gate_hidden_weight"]});
    biases.insert(biases.end(), {inputs["child_bias"], inputs["gate_hidden_bias"]});
  }
  const at::Tensor joined = at::cat(weights, 0);
  const std::int64_t padding = (alignment - joined.size(0) % alignment) % alignment;
  packed.columns = {static_cast<std::int32_t>(packed.shape.energy_width), static_cast<std::int32_t>(packed.shape.head_width),
                    static_cast<std::int32_t>(joined.size(0) + padding)};
  packed.first_weight = operand(at::constant_pad_nd(joined, {0, 0, 0, padding}));
  packed.first_bias = at::constant_pad_nd(at::cat(biases, 0), {0, padding}).contiguous();
  packed.energy_out_weight = operand(inputs["energy_out_weight"]);
  packed.displacement_out_weight = operand(inputs["displacement_out_weight"]);
  packed.gate_out_weight = operand(inputs["gate_out_weight"]);
  packed.out_bias = at::cat({inputs["energy_out_bias"], inputs["displacement_out_bias"], inputs["gate_out_bias"]}).contiguous();
  return packed;
}

struct HeadsResults {
  at::Tensor energy, displacement, delta, raw, spawn_measure, spawn_count, child_energy;

  static HeadsResults make(std::int64_t flows, const at::TensorOptions& options) {
    const auto scalars = [&] { return at::empty({flows}, options); };
    const auto vectors = [&] { return at::empty({flows, 3}, options); };
    return {scalars(), vectors(), vectors(), vectors(), scalars(), at::empty({flows}, options.dtype(at::kInt)), scalars()};
  }
  NamedTensors named() const {
    return {{"energy", energy},           {"displacement", displacement},   {"delta", delta},
            {"raw", raw},                 {"spawn_measure", spawn_measure}, {"spawn_count", spawn_count},
            {"child_energy", child_energy}};
  }
};

// What the backward pass is given, and the gradients it leaves.
struct HeadsGradients {
  static constexpr std::int64_t kSecondSums = 4;  // energy, displacement x y z
  at::Tensor energy, displacement, delta, raw, child_energy;  // given, of the results
  at::Tensor second, second_operand;                          // [flows, 4]; the same rounded in bf16 mode
  at::Tensor energy_operand_t, displacement_operand_t;        // transposed parts of second_operand
  at::Tensor carried, first_weight, first_bias;               // the first layer's: trained columns only
  at::Tensor energy_out_weight, displacement_out_weight, out_bias;
  at::Tensor no_child_weight, no_child_bias;  // zeros: movement mode has no child head

  HeadsGradients(const PackedHeads& packed, const NamedTensors& inputs) {
    const auto given = [&](const char* name) { return inputs[name].contiguous(); };
    energy = given("grad_energy"), displacement = given("grad_displacement"), delta = given("grad_delta");
    raw = given("grad_raw"), child_energy = given("grad_child_energy");
    const auto zeros = [&](at::IntArrayRef shape) { return at::zeros(shape, inputs["carried"].options()); };
    const HeadsShape& shape = packed.shape;
    second = zeros({shape.flows, kSecondSums});
    second_operand = packed.round ? zeros({shape.flows, kSecondSums}) : second;
    energy_operand_t = second_operand.narrow(1, 0, 1).t();
    displacement_operand_t = second_operand.narrow(1, 1, 3).t();
    carried = zeros({shape.flows, shape.hidden});
    first_weight = zeros({packed.trained(), shape.hidden});
    first_bias = zeros({packed.trained()});
    energy_out_weight = zeros({1, shape.energy_width});
    displacement_out_weight = zeros({3, shape.head_width});
    out_bias = zeros({kSecondSums});
    no_child_weight = zeros({1, shape.hidden});
    no_child_bias = zeros({1});
  }

  NamedTensors named(const PackedHeads& packed) const {
    const std::int64_t width = packed.shape.energy_width, head = packed.shape.head_width, child = packed.columns.child();
    const auto weight = [&](std::int64_t from, std::int64_t count) { return first_weight.narrow(0, from, count); };
    const auto bias = [&](std::int64_t from, std::int64_t count) { return first_bias.narrow(0, from, count); };
    return {{"grad_carried", carried},
            {"grad_position", raw},  // raw = position + delta + noise
            {"grad_energy_hidden_weight", weight(0, width)},
            {"grad_energy_hidden_bias", bias(0, width)},
            {"grad_energy_out_weight", energy_out_weight},
            {"grad_energy_out_bias", out_bias.narrow(0, 0, 1)},
            {"grad_displacement_hidden_weight", weight(width, head)},
            {"grad_displacement_hidden_bias", bias(width, head)},
            {"grad_displacement_out_weight", displacement_out_weight},
            {"grad_displacement_out_bias", out_bias.narrow(0, 1, 3)},
            {"grad_child_weight", packed.options.gate ? weight(child, 1) : no_child_weight},
            {"grad_child_bias", packed.options.gate ? bias(child, 1) : no_child_bias}};
  }
};

}  // namespace twinbench::energy_flow::carrier_heads

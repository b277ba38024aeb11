// Arithmetic of the carrier heads for one flow: noise, clamp, spawn counts, and what the backward pass needs. Host + device.
#pragma once

#include <cstdint>

#include "kernels/common/math.h"
#include "src/common/philox.h"

namespace twinbench::energy_flow {

// A clamp to [-1/2, 1/2] that keeps NaN, so that the movement rules see it.
TWINBENCH_HOST_DEVICE float clamp_half(float a) {
  const float low = a < -0.5f ? -0.5f : a;
  return low > 0.5f ? 0.5f : low;
}
// 1 where the clamp passes a, boundary included.
TWINBENCH_HOST_DEVICE float clamp_half_derivative(float a) { return kernels::absolute(a) <= 0.5f ? 1.0f : 0.0f; }

// min(M, floor(length / threshold) - 1) children; none up to the threshold, and none for a NaN length.
TWINBENCH_HOST_DEVICE int movement_spawn_count(float length, float threshold, int most) {
  if (!(length > threshold)) return 0;
  const float steps = std::floor(length / threshold) - 1.0f;
  return steps < static_cast<float>(most) ? static_cast<int>(steps) : most;
}

// min(M, floor((q - tau) / (1 - tau) * M) + 1) children; none up to tau, and none for a NaN gate.
TWINBENCH_HOST_DEVICE int gate_spawn_count(float gate, float threshold, int most) {
  if (!(gate > threshold)) return 0;
  const float steps = std::floor((gate - threshold) / (1.0f - threshold) * static_cast<float>(most)) + 1.0f;
  return steps < static_cast<float>(most) ? static_cast<int>(steps) : most;
}

struct Vector3 {
  float x, y, z;
};

// Which noise a flow gets: the whole Philox key but the sample and flow.
struct NoiseKey {
  std::uint64_t seed;
  std::uint32_t attempt, step;
};

// Three standard normals of one flow at one step (specification 0.6).
TWINBENCH_HOST_DEVICE Vector3 exploration_normals(NoiseKey key, std::uint32_t sample, std::uint32_t flow) {
  const PhiloxWords words =
      philox(key.seed, flow, sample, key.attempt, philox_tag(PhiloxStream::kExplorationNoise, key.step));
  const NormalPair first = philox_normal_pair(words.w[0], words.w[1]);
  return {first.cosine, first.sine, philox_normal_pair(words.w[2], words.w[3]).cosine};
}

// Settings of the finishing pass, the same for all flows.
struct HeadsRule {
  float scale;                      // lambda at this step
  float noise;                      // sigma; 0: no random numbers are drawn
  float noise_on_z;                 // 1 or 0
  float threshold;                  // theta or tau
  std::int32_t most;                // M
  std::int32_t gate;                // 1: gate mode, 0: movement mode
  NoiseKey key;
};

// What the second layers gave one flow, biases included; gate and child are read in gate mode only.
struct HeadSums {
  float energy;
  Vector3 displacement;
  float gate, child;
};

struct HeadResults {
  float energy;
  Vector3 delta, raw;
  float spawn_measure;  // length of the move, or the gate
  std::int32_t spawn_count;
  float child_energy;
};

TWINBENCH_HOST_DEVICE float zero_if_nan(float a) { return a == a ? a : 0.0f; }

TWINBENCH_HOST_DEVICE HeadResults finish_heads(const HeadsRule& rule, const HeadSums& sums, Vector3 position,
                                               std::uint32_t sample, std::uint32_t flow) {
  HeadResults result;
  result.energy = zero_if_nan(kernels::tanh(sums.energy));
  const Vector3 delta = {clamp_half(rule.scale * sums.displacement.x), clamp_half(rule.scale * sums.displacement.y),
                         clamp_half(rule.scale * sums.displacement.z)};
  Vector3 moved = delta;
  Vector3 raw = {position.x + delta.x, position.y + delta.y, position.z + delta.z};
  if (rule.noise != 0.0f) {
    const Vector3 normal = exploration_normals(rule.key, sample, flow);
    const Vector3 noise = {rule.noise * normal.x, rule.noise * normal.y, rule.noise * normal.z * rule.noise_on_z};
    moved = {delta.x + noise.x, delta.y + noise.y, delta.z + noise.z};
    raw = {raw.x + noise.x, raw.y + noise.y, raw.z + noise.z};
  }
  result.delta = delta;
  result.raw = raw;
  if (rule.gate) {
    result.spawn_measure = kernels::sigmoid(sums.gate);
    result.spawn_count = gate_spawn_count(result.spawn_measure, rule.threshold, rule.most);
    result.child_energy = kernels::tanh(sums.child) / static_cast<float>(result.spawn_count + 1);
  } else {
    result.spawn_measure = std::sqrt(moved.x * moved.x + moved.y * moved.y + moved.z * moved.z);
    result.spawn_count = movement_spawn_count(result.spawn_measure, rule.threshold, rule.most);
    result.child_energy = result.energy;
  }
  return result;
}

// Gradients of what the loss reads. Spawn measure and count carry none.
struct HeadGradients {
  float energy;
  Vector3 displacement, delta, raw;
  float child_energy;
};

// Gradients of the second layers' sums.
struct HeadSumGradients {
  float energy;
  Vector3 displacement;
  float child;
};

TWINBENCH_HOST_DEVICE float displacement_gradient(float scale, float displacement, float own, float delta, float raw) {
  return own + scale * clamp_half_derivative(scale * displacement) * (delta + raw);
}

TWINBENCH_HOST_DEVICE HeadSumGradients finish_heads_backward(const HeadsRule& rule, const HeadSums& sums,
                                                             std::int32_t spawn_count, const HeadGradients& grad) {
  HeadSumGradients result;
  const float energy = kernels::tanh(sums.energy);
  const float grad_energy = grad.energy + (rule.gate ? 0.0f : grad.child_energy);
  result.energy = grad_energy * kernels::tanh_derivative_from_output(energy);
  result.displacement = {
      displacement_gradient(rule.scale, sums.displacement.x, grad.displacement.x, grad.delta.x, grad.raw.x),
      displacement_gradient(rule.scale, sums.displacement.y, grad.displacement.y, grad.delta.y, grad.raw.y),
      displacement_gradient(rule.scale, sums.displacement.z, grad.displacement.z, grad.delta.z, grad.raw.z)};
  result.child = 0.0f;
  if (rule.gate)
    result.child = grad.child_energy * kernels::tanh_derivative_from_output(kernels::tanh(sums.child)) /
                   static_cast<float>(spawn_count + 1);
  return result;
}

}  // namespace twinbench::energy_flow

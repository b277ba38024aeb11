// Arithmetic of the carrier heads' forward pass for one flow (C08): noise, clamp, spawn counts. Host and device. Real
// is float; double serves the CPU path's fp64 operators. In the namespace of the component that specifies it; the whole
// forward takes it too.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/math.h"
#include "src/common/philox.h"

namespace twinbench::energy_flow::carrier_heads {

// A clamp to [-1/2, 1/2] that keeps NaN, so that the movement rules see it.
template <class Real>
TWINBENCH_HOST_DEVICE Real clamp_half(Real a) {
  const Real low = a < Real(-0.5) ? Real(-0.5) : a;
  return low > Real(0.5) ? Real(0.5) : low;
}
// min(M, floor(length / threshold) - 1) children; none up to the threshold, and none for a NaN length.
template <class Real>
TWINBENCH_HOST_DEVICE int movement_spawn_count(Real length, Real threshold, int most) {
  if (!(length > threshold)) return 0;
  const Real steps = std::floor(length / threshold) - Real(1);
  return steps < static_cast<Real>(most) ? static_cast<int>(steps) : most;
}

// min(M, floor((q - tau) / (1 - tau) * M) + 1) children; none up to tau, and none for a NaN gate.
template <class Real>
TWINBENCH_HOST_DEVICE int gate_spawn_count(Real gate, Real threshold, int most) {
  if (!(gate > threshold)) return 0;
  const Real steps = std::floor((gate - threshold) / (Real(1) - threshold) * static_cast<Real>(most)) + Real(1);
  return steps < static_cast<Real>(most) ? static_cast<int>(steps) : most;
}

template <class Real>
struct Vector3 {
  Real x, y, z;

  // Row `row` of a [rows, 3] matrix.
  static TWINBENCH_HOST_DEVICE Vector3 load(const Real* rows, std::int64_t row) {
    return {rows[3 * row], rows[3 * row + 1], rows[3 * row + 2]};
  }
  TWINBENCH_HOST_DEVICE void store(Real* rows, std::int64_t row) const {
    rows[3 * row] = x;
    rows[3 * row + 1] = y;
    rows[3 * row + 2] = z;
  }
};

// Which noise a flow gets: the whole Philox key but the sample and flow.
struct NoiseKey {
  std::uint64_t seed = 0;
  std::uint32_t attempt = 0, step = 0;
};

// Three standard normals of one flow at one step (specification 0.6).
TWINBENCH_HOST_DEVICE Vector3<float> exploration_normals(NoiseKey key, std::uint32_t sample, std::uint32_t flow) {
  const PhiloxWords words =
      philox(key.seed, flow, sample, key.attempt, philox_tag(PhiloxStream::kExplorationNoise, key.step));
  const NormalPair first = philox_normal_pair(words.w[0], words.w[1]);
  return {first.cosine, first.sine, philox_normal_pair(words.w[2], words.w[3]).cosine};
}

// Settings of the finishing pass, the same for all flows.
template <class Real>
struct Rule {
  Real scale = 1;         // lambda at this step
  Real noise = 0;         // sigma; 0: no random numbers are drawn
  Real noise_on_z = 1;    // 1 or 0
  Real threshold = 0;     // theta or tau
  std::int32_t most = 0;  // M
  bool gate = false;      // gate mode, else movement mode
  NoiseKey key = {};
};

// The same with the scale that the device has worked out, where there is one.
template <class Real>
TWINBENCH_HOST_DEVICE Rule<Real> with_scale(Rule<Real> rule, const Real* scale) {
  if (scale != nullptr) rule.scale = *scale;
  return rule;
}

// What the second layers gave one flow, biases included; gate and child are read in gate mode only.
template <class Real>
struct Sums {
  Real energy;
  Vector3<Real> displacement;
  Real gate, child;
};

template <class Real>
struct Results {
  Real energy;
  Vector3<Real> delta, raw;
  Real spawn_measure;  // length of the move, or the gate
  std::int32_t spawn_count;
  Real child_energy;
};

template <class Real>
TWINBENCH_HOST_DEVICE Real zero_if_nan(Real a) {
  return a == a ? a : Real(0);
}

template <class Real>
TWINBENCH_HOST_DEVICE Results<Real> finish(const Rule<Real>& rule, const Sums<Real>& sums, Vector3<Real> position,
                                           std::uint32_t sample, std::uint32_t flow) {
  Results<Real> result;
  result.energy = zero_if_nan(kernels::tanh(sums.energy));
  const Vector3<Real> delta = {clamp_half(rule.scale * sums.displacement.x),
                               clamp_half(rule.scale * sums.displacement.y),
                               clamp_half(rule.scale * sums.displacement.z)};
  Vector3<Real> moved = delta;
  Vector3<Real> raw = {position.x + delta.x, position.y + delta.y, position.z + delta.z};
  if (rule.noise != Real(0)) {
    const Vector3<float> normal = exploration_normals(rule.key, sample, flow);
    const Vector3<Real> noise = {rule.noise * Real(normal.x), rule.noise * Real(normal.y),
                                 rule.noise * Real(normal.z) * rule.noise_on_z};
    moved = {delta.x + noise.x, delta.y + noise.y, delta.z + noise.z};
    raw = {raw.x + noise.x, raw.y + noise.y, raw.z + noise.z};
  }
  result.delta = delta;
  result.raw = raw;
  if (rule.gate) {
    result.spawn_measure = kernels::sigmoid(sums.gate);
    result.spawn_count = gate_spawn_count(result.spawn_measure, rule.threshold, rule.most);
    result.child_energy = kernels::tanh(sums.child) / static_cast<Real>(result.spawn_count + 1);
  } else {
    result.spawn_measure = std::sqrt(moved.x * moved.x + moved.y * moved.y + moved.z * moved.z);
    result.spawn_count = movement_spawn_count(result.spawn_measure, rule.threshold, rule.most);
    result.child_energy = result.energy;
  }
  return result;
}

}  // namespace twinbench::energy_flow::carrier_heads

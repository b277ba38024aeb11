// What every variant of energy_flow.carrier_heads has to know about its inputs and options, and the one check of them.
#pragma once

#include <cstdint>

#include "src/component.h"

namespace twinbench::energy_flow::carrier_heads {

// carried [flows, hidden], position [flows, 3], sample_key and local_id [flows] (int64); two-layer heads with weights
// <head>_hidden_weight [width, hidden], <head>_hidden_bias [width], <head>_out_weight [outs, width], <head>_out_bias [outs]:
// energy (width energy_width, 1 out), displacement (head_width, 3), gate (head_width, 1); child_weight [1, hidden],
// child_bias [1].
struct HeadsShape {
  std::int64_t flows = 0, hidden = 0, energy_width = 0, head_width = 0;
};

struct HeadsOptions {
  bool gate = false;        // spawn_mode: gate, else movement
  double noise = 0;         // sigma_x; 0: no exploration noise at all
  bool noise_on_z = true;   // exploration_noise_apply_to_z
  std::uint64_t seed = 0;   // of the noise's Philox key
  std::uint32_t attempt = 0, step = 0;
  double scale = 1, smallest_scale = 1;   // displacement scale and its lower limit
  std::int64_t global_step = 0;           // of the scale's schedule
  double movement_threshold = 0.1;        // theta
  double gate_threshold = 0.6;            // tau
  int most_spawned = 3;                   // M
};

// The schedule's constants: the scale is constant for `kWarmUp` steps, then decays by kDecay every kInterval steps.
inline constexpr std::int64_t kWarmUp = 100, kInterval = 10;
inline constexpr double kDecay = 0.9;

// Throws kBadShape or kBadDtype, naming the input.
HeadsShape checked_heads_shape(const NamedTensors& inputs, const Setting& setting);
// Throws kOutOfRange where a threshold, count, step or deviation makes no sense.
HeadsOptions checked_heads_options(const Setting& setting);

}  // namespace twinbench::energy_flow::carrier_heads

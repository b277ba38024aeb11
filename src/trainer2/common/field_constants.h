// The constants of the field's dynamics (trainer2 C15), evaluated in fp64 and rounded to fp32 once (NR2).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/common/error.h"
#include "src/setting.h"

namespace twinbench::trainer2 {

constexpr std::int64_t kLongestHistory = 20;  // steps the dissipative rule remembers

struct FieldConstants {
  float half_kick, drift, kinetic, stiffness;  // dt / 2, dt / m, hbar^2 / 2m, k (0 without the harmonic potential)
  float turn;                                  // dt / hbar, of the dissipative rule alone
};

// Throws kOutOfRange, naming hbar, where the rule divides by zero.
inline FieldConstants field_constants(const Setting& setting) {
  const double dt = setting.option("dt"), mass = setting.option("mass"), hbar = setting.option("hbar");
  if (setting.on("dissipative") && hbar == 0)
    throw Error(ErrorKind::kOutOfRange, "hbar", "0", "above 0: the dissipative rule divides by it");
  return {static_cast<float>(dt / 2), static_cast<float>(dt / mass), static_cast<float>(hbar * hbar / (2 * mass)),
          setting.on("harmonic") ? static_cast<float>(setting.option("stiffness")) : 0.0f,
          setting.on("dissipative") ? static_cast<float>(dt / hbar) : 0.0f};
}

// (1 - w) hbar / 2m, the Laplacian's factor in the dissipative rule after `history` steps, 0 to kLongestHistory.
inline float dissipative_factor(const Setting& setting, std::int64_t history) {
  const double grown = setting.option("memory_gain") * std::log1p(static_cast<double>(history)) *
                       setting.option("memory_rate"),
               share = std::min(std::max(grown, 0.0), 1.0);
  return static_cast<float>((1 - share) * setting.option("hbar") / (2 * setting.option("mass")));
}

}  // namespace twinbench::trainer2

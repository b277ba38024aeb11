// The losses of a micro-step (C23): mean squared errors of surfaces, how they are put together, their gradients. Shared
// by host and device; the training step calls it too.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/arguments.h"

namespace twinbench::energy_flow {

constexpr double kDecoderShare = 0.1;           // of the decoder's loss in the text loss
constexpr std::int64_t kMostLossBlocks = 4096;  // of either pair

// Two surfaces of `count` values each; count 0: none, and its loss is 0.
template <class Real>
struct SurfacePair {
  const Real *surface = nullptr, *target = nullptr;
  Real* gradient = nullptr;  // of the total loss with respect to the surface; null: none is asked for
  std::int64_t count = 0;
};

// Where the losses go, [1] each.
template <class Real>
struct LossPlaces {
  Real *energy = nullptr, *encoder = nullptr, *decoder = nullptr, *text = nullptr, *total = nullptr;
  std::int64_t* finite = nullptr;  // 1 where the total is a number that a step may follow, else 0
};

// The factor of a surface's differences in the gradient. `share`: of its loss in the total; `upstream`: the gradient of
// whatever follows with respect to the total.
template <class Real>
TWINBENCH_HOST_DEVICE Real gradient_factor(double share, double upstream, std::int64_t count) {
  return static_cast<Real>(2.0 * share * upstream / static_cast<double>(count));
}

// From sums of squared differences and the decoder's loss, which the host knows.
template <class Real>
TWINBENCH_HOST_DEVICE void set_losses(const LossPlaces<Real>& to, double energy_sum, std::int64_t energy_count,
                                      double encoder_sum, std::int64_t encoder_count, double decoder, double weight) {
  const double energy = energy_count > 0 ? energy_sum / static_cast<double>(energy_count) : 0.0;
  const double encoder = encoder_count > 0 ? encoder_sum / static_cast<double>(encoder_count) : 0.0;
  const double text = encoder + kDecoderShare * decoder;
  const Real total = static_cast<Real>(energy + weight * text);
  *to.energy = static_cast<Real>(energy);
  *to.encoder = static_cast<Real>(encoder);
  *to.decoder = static_cast<Real>(decoder);
  *to.text = static_cast<Real>(text);
  *to.total = total;
  *to.finite = std::isfinite(total) ? 1 : 0;
}

// One launch.
struct SurfaceLossArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  SurfacePair<float> energy = {}, encoder = {};
  double weight = 0, decoder = 0;   // of the text loss in the total; the decoder's loss
  const double* decoded = nullptr;  // [1]: the decoder's loss instead, where the device alone knows it
  const float* upstream = nullptr;  // [1], read where gradients are asked for
  LossPlaces<float> losses = {};
  double* partial = nullptr;    // [2 * kMostLossBlocks], a place a block
  unsigned* arrived = nullptr;  // [1], 0 between launches
  std::int32_t energy_blocks = 1, encoder_blocks = 0;
};

}  // namespace twinbench::energy_flow

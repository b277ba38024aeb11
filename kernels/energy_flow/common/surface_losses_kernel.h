// The losses' kernel: blocks share two pairs of surfaces, each value is read once; the last block adds what all found.
#pragma once

#include "kernels/common/grid.h"
#include "kernels/common/simt_handover.h"
#include "kernels/common/simt_reduce.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/common/surface_losses.h"

namespace twinbench::energy_flow {

constexpr int kLossThreads = 256;
constexpr int kLossBatch = 4;  // pairs of accesses of a thread in flight
static_assert(kMostLossBlocks >= kernels::kMostBlocks);

// Blocks for `count` pairs of values.
inline std::int32_t loss_blocks(std::int64_t count) {
  return static_cast<std::int32_t>(kernels::copying_blocks(count));
}

// Whether a pair may be taken four values at a time. Null pointers are not accessed.
inline bool lies_in_fours(const SurfacePair<float>& of) {
  const auto aligned = [](const float* values) { return reinterpret_cast<std::uintptr_t>(values) % 16 == 0; };
  return of.count % 4 == 0 && aligned(of.surface) && aligned(of.target) && aligned(of.gradient);
}

// This thread's share of the sum of squared differences, fp32 within a group, fp64 across groups.
template <int kWidth, class Block>
TWINBENCH_DEVICE double differences(const Block& block, const SurfacePair<float>& of, unsigned first_block,
                                    unsigned blocks, float factor) {
  using Values = kernels::Floats<kWidth>;
  struct Pair {
    Values surface, target;
  };
  double sum = 0;
  kernels::in_batches<kLossBatch, std::int64_t>(
      static_cast<std::int64_t>(block.index().x - first_block) * kLossThreads + kernels::simt::thread_rank(block),
      static_cast<std::int64_t>(blocks) * kLossThreads, of.count / kWidth,
      [&](std::int64_t i) {
        return Pair{kernels::load<kWidth>(of.surface + kWidth * i), kernels::load<kWidth>(of.target + kWidth * i)};
      },
      [&](std::int64_t i, const Pair& pair) {
        const Values difference = kernels::map(pair.surface, pair.target, [](float a, float b) { return a - b; });
        float square = 0;
        TWINBENCH_UNROLL
        for (int k = 0; k < kWidth; ++k) square = kernels::multiply_add(difference.of[k], difference.of[k], square);
        sum += static_cast<double>(square);
        if (of.gradient != nullptr)
          kernels::store(of.gradient + kWidth * i, kernels::map(difference, [&](float d) { return d * factor; }));
      });
  return sum;
}

// Grid: energy_blocks + encoder_blocks.
template <int kWidth>
struct SurfaceLossesAs {
  static constexpr int kMaxThreads = kLossThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const SurfaceLossArguments& a) const {
    const auto energy_blocks = static_cast<unsigned>(a.energy_blocks),
               encoder_blocks = static_cast<unsigned>(a.encoder_blocks);
    const bool encodes = block.index().x >= energy_blocks;
    const SurfacePair<float>& of = encodes ? a.encoder : a.energy;
    const float factor = of.gradient == nullptr ? 0.0f
                                                : gradient_factor<float>(encodes ? a.weight : 1.0,
                                                                         static_cast<double>(*a.upstream), of.count);
    const double found = kernels::simt::block_sum(
        block,
        differences<kWidth>(block, of, encodes ? energy_blocks : 0, encodes ? encoder_blocks : energy_blocks, factor));
    const auto thread = static_cast<unsigned>(kernels::simt::thread_rank(block));
    if (thread == 0) a.partial[encodes ? kMostLossBlocks + block.index().x - energy_blocks : block.index().x] = found;
    if (!kernels::simt::is_last_block(block, a.arrived, energy_blocks + encoder_blocks)) return;
    double energy = 0, encoder = 0;
    TWINBENCH_ROLLED
    for (unsigned i = thread; i < energy_blocks; i += kLossThreads) energy += a.partial[i];
    TWINBENCH_ROLLED
    for (unsigned i = thread; i < encoder_blocks; i += kLossThreads) encoder += a.partial[kMostLossBlocks + i];
    energy = kernels::simt::block_sum(block, energy);
    encoder = kernels::simt::block_sum(block, encoder);
    if (thread > 0) return;
    const double decoder = a.decoded != nullptr ? *a.decoded : a.decoder;
    set_losses(a.losses, energy, a.energy.count, encoder, a.encoder.count, decoder, a.weight);
  }
};

}  // namespace twinbench::energy_flow

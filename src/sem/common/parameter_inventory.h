// The documented model's parameters in canonical order (sem 4.3), by configuration (4.1): lengths and kinds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/sem/common/parameter_table.h"

namespace twinbench::sem {

struct ParameterLength {
  std::int64_t count = 0;
  ParameterKind kind = ParameterKind::kPlain;
};

// The fields of a configuration that parameters depend on.
struct ModelSizes {
  std::int64_t dimension, layers, vocabulary;  // D, L, V
  std::int64_t candidates, projection;         // M, Q
  std::int64_t block;                          // bs, of the spinor blocks
  std::int64_t states, groups;                 // N, G
  std::int64_t sparsity;                       // of the first scale; doubled from scale to scale
};

inline constexpr ModelSizes kTinyModel{8, 2, 32, 8, 4, 4, 3, 2, 2};
inline constexpr ModelSizes kSmallModel{32, 3, 256, 16, 8, 8, 8, 4, 4};
inline constexpr ModelSizes kMidModel{256, 4, 4096, 128, 64, 8, 64, 16, 8};
inline constexpr ModelSizes kMaxModel{256, 16, 32768, 128, 64, 8, 128, 16, 8};

// 60, 85, 110 and 410 tensors of 2,210, 44,157, 4,348,764 and 29,918,896 parameters. The head's bias gets no gradient.
inline std::vector<ParameterLength> parameter_inventory(const ModelSizes& of) {
  constexpr std::int64_t kConvolution = 4, kScales = 3;  // Kc
  std::vector<ParameterLength> all;
  const auto plain = [&](std::initializer_list<std::int64_t> counts) {
    for (const std::int64_t count : counts) all.push_back({count, ParameterKind::kPlain});
  };
  const auto pair = [&](std::int64_t count) {
    all.push_back({count, ParameterKind::kReal});
    all.push_back({count, ParameterKind::kImaginary});
  };
  const std::int64_t d = of.dimension, per_group = d / of.groups, states = of.groups * of.states;
  // Embedding; cost projection; codebook; sparse representation.
  plain({of.vocabulary * d, of.projection * d, of.projection, of.candidates * of.projection, d * of.candidates, d});
  for (std::int64_t layer = 0; layer < of.layers; ++layer) {
    plain({d});                                                              // norm.gamma
    pair(d * of.block);                                                      // spinor
    plain({d * 2 * d, d, 2 * d * 2 * kConvolution, 2 * d, states, states});  // gate, convolution, a_raw, a_phase
    pair(of.states * per_group);                                             // B
    pair(per_group * of.states);                                             // C
    plain({2 * 2 * per_group, 2});                                           // dt
    pair(d * d);                                                             // out
    plain({1, d, 1});                                                        // act_thr, out_scale, res_scale
  }
  for (std::int64_t layer = 0; layer < of.layers; ++layer) {
    plain({d});  // alpha
    for (std::int64_t scale = 0; scale < kScales; ++scale)
      plain({std::min(d * ((of.sparsity << scale) / 2), d * (d - 1) / 2)});  // edges: each node's half, at most all
    plain({kScales});                                                        // mix
  }
  plain({d, of.vocabulary * d, of.vocabulary * d});  // final.gamma, head.wr, head.wi: not a pair
  all.push_back({of.vocabulary, ParameterKind::kWithoutGradient});
  return all;
}

}  // namespace twinbench::sem

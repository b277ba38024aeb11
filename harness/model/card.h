// A card as the model of its times knows it: constants, each with its source, from ci/cards/<card>.json.
#pragma once

#include <string>
#include <vector>

namespace twinbench::model {

struct Card {
  std::string name;                       // "H200"
  std::string architecture;               // "sm_90": whose compiled kernels run there
  std::vector<std::string> device_names;  // as drivers give them

  double multiprocessors = 0, clock = 0;                                         // cycles a second
  double copy_bandwidth = 0, memory_latency = 0;                                 // B/s read + written, s
  double l2_bandwidth = 0, l2_bytes = 0, l2_latency = 0;                         // B/s, B, s
  double launch = 0, block_start = 0;                                            // s
  double warps_in_flight = 0, schedulers = 0, fma_lanes = 0, special_lanes = 0;  // of a multiprocessor
  double shared_latency = 0, arithmetic_latency = 0;                             // cycles
  double gemm_bf16 = 0, gemm_tf32 = 0, gemm_fp32 = 0, gemm_unaligned = 0;        // FLOP/s; share of it
  double mma_bf16 = 0, mma_tf32 = 0;  // FLOP/s of warps' own tensor-core instructions (mma.sync)
};

// Throws kBadFile or kOutOfRange that name the file and the constant: one that is missing, unknown, no number, not
// above zero, or without a source.
Card load_card(const std::string& path);

// Every card of a folder, by file name. Throws kBadFile where there is none.
std::vector<Card> load_cards(const std::string& folder);

}  // namespace twinbench::model

// The model: one line a term.
#include "harness/model/launch_time.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "src/common/error.h"

namespace twinbench::model {
namespace {

constexpr double kWarpSize = 32;
constexpr double kBarrierCycles = 30, kWarpOperationCycles = 24;  // latency of one, arXiv:2402.13499 and 1804.06826
constexpr double kProductCycles = 33;  // latency of a tensor-core instruction of a warp, arXiv:2402.13499
constexpr std::int64_t kTiles[][2] = {{128, 256}, {128, 128}, {128, 64}, {64, 64}, {32, 64}, {16, 64}};
// Smaller tiles reach less of the ceiling, as each operand is used less often: the fourth root of their share, assumed.
constexpr double kSmallTile = 128 * 128, kTileExponent = 0.25;
constexpr double kManyRounds = 4;          // of waiting for loads, beyond which more of them in flight would help
constexpr std::int64_t kLeastInner = 128;  // of one part, where the inner axis is split

// The longest term, or `joint` of several where that is longer.
void finish(double cost, double joint, ModelledTime& time) {
  const auto longest = std::max_element(time.terms.begin(), time.terms.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  time.limiter = longest->second < cost ? "launch" : longest->first;
  time.seconds = cost + std::max(longest->second, joint);
}

// Moving bytes and waiting for them overlap, but not wholly: an exponent of 1 would be their sum, a large one the
// longer. 1.2 is what the streaming kernels of gpu-benches show on an H200 at every occupancy (launch_time_test.cpp).
double overlapped(double moving, double waiting) {
  constexpr double kExponent = 1.2;
  return std::pow(std::pow(moving, kExponent) + std::pow(waiting, kExponent), 1 / kExponent);
}

double up(double value) { return std::ceil(value - 1e-9); }

}  // namespace

ModelledTime time_of(const Card& card, const LaunchWork& work) {
  const double warps_per_block = up(work.threads_per_block / kWarpSize);
  const double resident = std::max(1.0, std::floor(work.warps_per_multiprocessor / warps_per_block));  // blocks
  const double waves = up(work.blocks / (card.multiprocessors * resident));
  const double busy = std::min(card.multiprocessors, work.blocks);
  const double warps = work.blocks * warps_per_block;
  const double cycles = busy * card.clock;  // a second
  const double latency = work.in_l2 ? card.l2_latency : card.memory_latency;

  // Little's law is in here: a warp waits for its loads in rounds of as many as it has in flight.
  const double rounds = work.load_requests / warps / std::max(1.0, work.loads_in_flight) +
                        work.copy_requests / warps / std::max(1.0, work.copies_in_flight);
  const double waiting = waves * rounds * latency;
  // Tensor-core instructions follow each other without waiting, but for the first ones after a barrier.
  const bool multiplies = work.bf16_flops + work.tf32_flops > 0;
  const double barrier = kBarrierCycles + (multiplies ? card.shared_latency + kProductCycles : 0);
  const double other = waves * (card.block_start + (work.barriers / work.blocks * barrier +
                                                    work.warp_operations / warps * kWarpOperationCycles +
                                                    work.dependent_instructions * card.arithmetic_latency) /
                                                       card.clock);
  const bool starved = waiting > other && waves * rounds > kManyRounds;
  ModelledTime time;
  time.terms = {{"memory bandwidth", work.in_l2 ? 0 : work.memory_bytes / card.copy_bandwidth},
                {starved ? "loads in flight" : "latency", waiting + other},
                {"L2 bandwidth", work.sectors * 32 / card.l2_bandwidth},
                {"shared memory", work.wavefronts / cycles},
                {"instruction issue", work.instructions / (card.schedulers * cycles)},
                {"FMA", work.fma_instructions * kWarpSize / (card.fma_lanes * cycles)},
                {"tensor cores", (work.bf16_flops / card.mma_bf16 + work.tf32_flops / card.mma_tf32) *
                                     up(work.blocks / card.multiprocessors) * card.multiprocessors / work.blocks},
                {"special functions", work.special_instructions * kWarpSize / (card.special_lanes * cycles)}};
  finish(card.launch, overlapped(time.terms[0].second, time.terms[1].second), time);
  return time;
}

ModelledTime time_of(const Card& card, const ProductWork& work) {
  const bool bf16 = work.dtype == "bf16";
  const double rate = bf16                   ? card.gemm_bf16
                      : work.dtype == "tf32" ? card.gemm_tf32
                      : work.dtype == "fp32"
                          ? card.gemm_fp32
                          : throw Error(ErrorKind::kBadDtype, "product", work.dtype, "bf16, tf32 or fp32");
  const double size = bf16 ? 2 : 4;
  const auto aligned = [&](std::int64_t extent) { return static_cast<std::int64_t>(extent * size) % 16 == 0; };
  const double share = aligned(work.inner) && aligned(work.columns) ? 1.0 : card.gemm_unaligned;
  const double batch = static_cast<double>(work.batch);
  const double m = static_cast<double>(work.rows), k = static_cast<double>(work.inner),
               n = static_cast<double>(work.columns);
  double best = INFINITY;
  for (const auto& [rows, columns] : kTiles)
    for (std::int64_t parts = 1; parts == 1 || work.inner / parts >= kLeastInner; parts *= 2) {
      const double tiles = batch * up(m / rows) * up(n / columns) * parts;
      const double waves = up(tiles / card.multiprocessors);
      const double area = static_cast<double>(rows * columns),
                   reuse = std::min(1.0, std::pow(area / kSmallTile, kTileExponent));
      const double of_tile = 2 * area * (k / parts) / (rate * share * reuse / card.multiprocessors);
      const double sum_of_parts = parts > 1 ? card.launch + 4 * batch * m * n * (parts + 1) / card.l2_bandwidth : 0;
      best = std::min(best, waves * of_tile + sum_of_parts);
    }
  const double bytes = batch * (size * (m * k + k * n) + 4 * m * n);
  ModelledTime time;
  time.terms = {{"tiles", best},
                {"memory bandwidth", bytes / card.copy_bandwidth},
                {"latency", card.block_start + 2 * card.memory_latency}};
  finish(card.launch, 0, time);
  return time;
}

ProductWork product_of(const std::string& name) {
  char dtype[8] = "";
  long long b = 1, m = 0, k = 0, n = 0;
  if (std::sscanf(name.c_str(), "mm %lldx%lldx%lld %7s", &m, &k, &n, dtype) == 4) return {1, m, k, n, dtype};
  if (std::sscanf(name.c_str(), "bmm %lldx%lldx%lldx%lld %7s", &b, &m, &k, &n, dtype) == 5) return {b, m, k, n, dtype};
  throw Error(ErrorKind::kBadShape, "product", name, "\"mm 64x65x192 bf16\" or \"bmm 2x64x65x192 fp32\"");
}

}  // namespace twinbench::model

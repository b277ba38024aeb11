// Measures ceilings through LibTorch itself, the same library the variants use, and derives floors from costs.
#include "harness/roofline/ceilings.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "src/common/error.h"

namespace twinbench {
namespace {

// The best of `rounds`: a ceiling is what the machine can do, so noise only ever hides it.
double best_seconds(int rounds, const std::function<void()>& body) {
  double best = 1e30;
  body();
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

Ceiling gemm_ceiling(c10::ScalarType dtype, const std::string& name, std::int64_t n) {
  const auto left = at::randn({n, n}).to(dtype), right = at::randn({n, n}).to(dtype);
  auto out = at::empty({n, n}, left.options());
  const double seconds = best_seconds(5, [&] { at::mm_out(out, left, right); });
  return {"cpu", name, "FLOP/s", 2.0 * n * n * n / seconds, std::nullopt, "best of 5 at::mm_out, n = " + std::to_string(n) + ", random data"};
}

}  // namespace

std::vector<Ceiling> measure_ceilings(c10::Device device, bool quick) {
  if (device.type() != c10::DeviceType::CPU)
    throw Error(ErrorKind::kMissingDevice, "device", device.str(), "ceilings are measured on the CPU in this build");
  at::NoTF32Guard fp32_means_fp32;
  const std::int64_t elements = quick ? (1 << 24) : (1 << 26);  // 64 or 256 MiB a side: well past the caches
  const auto source = at::rand({elements});
  auto target = at::empty_like(source);
  const double copy = best_seconds(5, [&] { target.copy_(source); });
  const std::int64_t n = quick ? 512 : 1536;
  return {{"cpu", "copy", "B/s", 8.0 * elements / copy, std::nullopt, "best of 5 copies, " + std::to_string(elements * 4 / (1 << 20)) + " MiB a side, read + written"},
          gemm_ceiling(at::kFloat, "gemm_fp32", n), gemm_ceiling(at::kBFloat16, "gemm_bf16", n)};
}

nlohmann::json to_json(const Ceiling& ceiling) {
  return {{"device", ceiling.device}, {"name", ceiling.name}, {"unit", ceiling.unit}, {"value", ceiling.value},
          {"data_sheet", ceiling.data_sheet ? nlohmann::json(*ceiling.data_sheet) : nlohmann::json(nullptr)},
          {"method", ceiling.method}};
}

double last_level_cache_bytes() {
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? static_cast<double>(bytes) : 32.0 * (1 << 20);
}

Floor floor_of(const Cost& cost, const std::vector<Ceiling>& ceilings, const std::string& device, Dtype dtype, double cache_bytes) {
  const auto value = [&](const std::string& name) {
    for (const auto& ceiling : ceilings)
      if (ceiling.device == device && ceiling.name == name) return ceiling.value;
    return 0.0;
  };
  const double copy = value("copy"), fp32 = value("gemm_fp32"), bf16 = value("gemm_bf16");
  // In bf16 mode a variant may still compute in fp32 where that is faster, so the floor takes the better of the two.
  const double rate = dtype == Dtype::kBf16 ? std::max(fp32, bf16) : fp32;
  const double by_bytes = copy > 0 ? cost.bytes / copy : 0, by_flops = rate > 0 ? cost.flops / rate : 0;
  Floor floor;
  floor.seconds = std::max(by_bytes, by_flops);
  if (floor.seconds > 0) floor.bound = by_bytes > by_flops ? "bytes" : "flops";
  floor.physical = floor.bound == "flops" || cost.bytes > 2 * cache_bytes;
  return floor;
}

}  // namespace twinbench

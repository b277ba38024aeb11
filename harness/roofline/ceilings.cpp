// Measures ceilings through LibTorch itself, the same library the variants use, and derives floors from costs.
#include "harness/roofline/ceilings.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>

#include "src/common/cpu_clones.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr int kRounds = 5, kRoundsAgain = 40;  // again: a verdict hangs on it, and the machine may be busy with others
// A third of the work of 1,536 rows at the same rate, for 40 rounds of it are waited for, with one thread too.
constexpr std::int64_t kRowsAgain = 1024;

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

// Ceilings are measured again while a twin is timed: the process's default generator stays as it is.
at::Generator own_generator() { return at::detail::createCPUGenerator(1234); }

Ceiling gemm_ceiling(const std::string& name, c10::ScalarType dtype, std::int64_t n, int rounds) {
  at::NoTF32Guard fp32_means_fp32;
  const auto left = at::randn({n, n}, own_generator()).to(dtype), right = at::randn({n, n}, own_generator()).to(dtype);
  auto out = at::empty({n, n}, left.options());
  const double seconds = best_seconds(rounds, [&] { at::mm_out(out, left, right); });
  return {
      "cpu",        name,
      "FLOP/s",     2.0 * n * n * n / seconds,
      std::nullopt, "best of " + std::to_string(rounds) + " at::mm_out, n = " + std::to_string(n) + ", random data"};
}

// A copy's target is read into the cache before it is written, which nobody counts; an update in place has no such
// hidden third, and is what an optimizer does. The faster of both is what the memory can do.
Ceiling copy_ceiling(std::int64_t elements, int rounds) {
  const auto source = at::rand({elements}, own_generator());
  auto target = at::empty_like(source);
  const double copied = best_seconds(rounds, [&] { target.copy_(source); }),
               updated = best_seconds(rounds, [&] { target.mul_(0.999); });
  return {"cpu",
          "copy",
          "B/s",
          8.0 * elements / std::min(copied, updated),
          std::nullopt,
          "best of " + std::to_string(rounds) + (copied <= updated ? " copies, " : " updates in place, ") +
              std::to_string(elements * 4 / (1 << 20)) + " MiB a side, read + written"};
}

// What a thread's multipliers can do in registers: own loops come nearer to it than the library's product does.
TWINBENCH_CPU_CLONES float multiply_add(std::int64_t turns, float by) {
  constexpr int kSums = 192;  // twelve vectors of sixteen: two units with a latency of four turns are kept busy
  float sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = static_cast<float>(i);
  for (std::int64_t turn = 0; turn < turns; ++turn)
    for (int i = 0; i < kSums; ++i) sums[i] = __builtin_fmaf(sums[i], by, 1.0f);
  float all = 0;
  for (const float sum : sums) all += sum;
  return all;
}

Ceiling multiply_add_ceiling(int rounds) {
  constexpr std::int64_t kTurns = 100'000, kSums = 192;
  volatile float by = 0.5f, kept = 0;
  const double seconds = best_seconds(rounds, [&] { kept = multiply_add(kTurns, by); });
  return {"cpu", "gemm_fp32", "FLOP/s", 2.0 * kTurns * kSums / seconds, std::nullopt, "multiply-adds in registers"};
}

// 64 or 256 MiB a side of a copy are well past the caches; `n`: rows of a product.
Ceiling cpu_ceiling(const std::string& name, bool quick, std::int64_t n, int rounds) {
  if (name == "copy") return copy_ceiling(quick ? (1 << 24) : (1 << 26), rounds);
  if (name == "gemm_fp32") return gemm_ceiling(name, at::kFloat, n, rounds);
  if (name == "gemm_bf16") return gemm_ceiling(name, at::kBFloat16, n, rounds);
  throw Error(ErrorKind::kUnknownName, "ceiling", name, "the CPU has copy, gemm_fp32 and gemm_bf16");
}

}  // namespace

std::vector<Ceiling> measure_cpu_ceilings(bool quick) {
  const std::int64_t n = quick ? 512 : 1536;
  return {cpu_ceiling("copy", quick, n, kRounds), cpu_ceiling("gemm_fp32", quick, n, kRounds),
          cpu_ceiling("gemm_bf16", quick, n, kRounds)};
}

Ceiling measure_cpu_ceiling(const std::string& name) {
  const Ceiling together = cpu_ceiling(name, false, kRowsAgain, kRoundsAgain);
  const int threads = at::get_num_threads();
  Ceiling alone = together;
  if (threads > 1) {
    at::set_num_threads(1);
    alone = cpu_ceiling(name, false, kRowsAgain, kRoundsAgain);
    at::set_num_threads(threads);
  }
  if (name == "gemm_fp32") {
    const Ceiling registers = multiply_add_ceiling(kRoundsAgain);
    if (registers.value > alone.value) alone = registers;
  }
  alone.value *= threads;
  alone.method = std::to_string(threads) + " threads times one thread's " + alone.method;
  return alone.value > together.value ? alone : together;
}

nlohmann::json to_json(const Ceiling& ceiling) {
  nlohmann::json row = {
      {"device", ceiling.device},
      {"name", ceiling.name},
      {"unit", ceiling.unit},
      {"value", ceiling.value},
      {"data_sheet", ceiling.data_sheet ? nlohmann::json(*ceiling.data_sheet) : nlohmann::json(nullptr)},
      {"method", ceiling.method}};
  if (!ceiling.data_sheet_source.empty()) row["data_sheet_source"] = ceiling.data_sheet_source;
  return row;
}

Ceiling ceiling_from(const nlohmann::json& row) {
  Ceiling ceiling{row.at("device"),
                  row.at("name"),
                  row.at("unit"),
                  row.at("value"),
                  std::nullopt,
                  row.at("method"),
                  row.value("data_sheet_source", "")};
  if (row.at("data_sheet").is_number()) ceiling.data_sheet = row["data_sheet"].get<double>();
  return ceiling;
}

double last_level_cache_bytes() {
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? static_cast<double>(bytes) : 32.0 * (1 << 20);
}

Floor floor_of(const Cost& cost, const std::vector<Ceiling>& ceilings, const std::string& device, Dtype dtype,
               double cache_bytes) {
  const auto value = [&](const std::string& name) {
    for (const auto& ceiling : ceilings)
      if (ceiling.device == device && ceiling.name == name) return ceiling.value;
    return 0.0;
  };
  // Tensor cores multiply fp16 as fast as bf16. In a mode that rounds a variant may still compute in fp32 where that is
  // faster, so the floor takes the better of the two.
  const std::string rounded = dtype == Dtype::kBf16 || dtype == Dtype::kFp16 ? "gemm_bf16"
                              : dtype == Dtype::kTf32                        ? "gemm_tf32"
                                                                             : "";
  const double copy = value("copy"), rate = std::max(value("gemm_fp32"), rounded.empty() ? 0.0 : value(rounded));
  const double by_bytes = copy > 0 ? cost.bytes / copy : 0, by_flops = rate > 0 ? cost.flops / rate : 0;
  Floor floor;
  floor.seconds = std::max(by_bytes, by_flops);
  if (floor.seconds > 0) floor.bound = by_bytes > by_flops ? "bytes" : "flops";
  floor.physical = floor.bound == "flops" || cost.bytes > 2 * cache_bytes;
  if (floor.bound == "bytes") floor.ceilings = {"copy"};
  if (floor.bound == "flops") floor.ceilings = {"gemm_fp32"};
  if (floor.bound == "flops" && !rounded.empty() && value(rounded) > 0) floor.ceilings.push_back(rounded);
  return floor;
}

namespace {

// A burst of other work may fall on a measurement too: rejection waits for so many of them.
constexpr int kMeasuredAgain = 3;

std::vector<Ceiling> at_least_data_sheet(std::vector<Ceiling> ceilings) {
  for (auto& ceiling : ceilings) ceiling.value = std::max(ceiling.value, ceiling.data_sheet.value_or(0));
  return ceilings;
}

}  // namespace

FloorJudgement judge_floor(const Cost& cost, std::vector<Ceiling> ceilings, const std::string& device, Dtype dtype,
                           double cache_bytes, double seconds,
                           const std::function<Ceiling(const std::string& name)>& remeasure) {
  FloorJudgement judgement;
  std::map<std::string, int> measured_again;
  while (true) {
    judgement.floor = floor_of(cost, ceilings, device, dtype, cache_bytes);
    // Under the data sheets the floor is never higher, but another bound may bind, one that is not physical.
    const Floor lowest = floor_of(cost, at_least_data_sheet(ceilings), device, dtype, cache_bytes);
    judgement.impossible_below_s.reset();
    if (judgement.floor.physical && lowest.physical) judgement.impossible_below_s = lowest.seconds / kBeyondFloor;
    judgement.beyond = judgement.impossible_below_s && seconds < *judgement.impossible_below_s;
    bool measured = false;
    if (judgement.beyond)
      for (const auto& name : judgement.floor.ceilings)
        if (measured_again[name]++ < kMeasuredAgain) {
          const Ceiling now = remeasure(name);
          for (auto& ceiling : ceilings)
            if (ceiling.device == device && ceiling.name == name && now.value > ceiling.value) ceiling = now;
          judgement.remeasured.push_back(now);
          measured = true;
        }
    if (!measured) return judgement;  // possible, or impossible under fresh ceilings
  }
}

}  // namespace twinbench

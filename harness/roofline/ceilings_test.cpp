// The physical floor: a stale ceiling must not reject an honest time, and a time without work must not pass.
#include "harness/roofline/ceilings.h"

#include <gtest/gtest.h>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr double kCache = 32.0 * (1 << 20);

std::vector<Ceiling> ceilings(double copy, double fp32, double bf16) {
  return {{"cpu", "copy", "B/s", copy, std::nullopt, "given"},
          {"cpu", "gemm_fp32", "FLOP/s", fp32, std::nullopt, "given"},
          {"cpu", "gemm_bf16", "FLOP/s", bf16, std::nullopt, "given"}};
}

// A machine whose ceilings read `truth` whenever they are measured.
struct Machine {
  std::vector<Ceiling> truth;
  std::vector<std::string> asked;
  Ceiling operator()(const std::string& name) {
    asked.push_back(name);
    for (const auto& ceiling : truth)
      if (ceiling.name == name) return ceiling;
    throw Error(ErrorKind::kUnknownName, "ceiling", name, "");
  }
};

FloorJudgement judged(const Cost& cost, const std::vector<Ceiling>& at_start, Machine& machine, double seconds,
                      Dtype dtype = Dtype::kFp32) {
  return judge_floor(cost, at_start, "cpu", dtype, kCache, seconds,
                     [&](const std::string& name) { return machine(name); });
}

TEST(PhysicalFloor, StaleCeilingDoesNotRejectAnHonestTime) {
  Machine machine{ceilings(20e9, 190e9, 45e9), {}};
  const Cost cost{0, 19e9};                     // 0.1 s at the true rate
  const auto stale = ceilings(2e9, 19e9, 4e9);  // measured while ten others ran: floor 1 s
  const auto result = judged(cost, stale, machine, 0.11);
  EXPECT_FALSE(result.beyond);
  EXPECT_EQ(machine.asked, std::vector<std::string>{"gemm_fp32"});
  EXPECT_DOUBLE_EQ(result.floor.seconds, 0.1);
}

TEST(PhysicalFloor, NoWorkIsRejectedAfterMeasuringAgain) {
  Machine machine{ceilings(20e9, 190e9, 45e9), {}};
  EXPECT_TRUE(judged({0, 19e9}, machine.truth, machine, 1e-6).beyond);
  EXPECT_EQ(machine.asked, std::vector<std::string>(3, "gemm_fp32"));
  EXPECT_TRUE(judged({4e9, 0}, machine.truth, machine, 1e-6).beyond);
}

TEST(PhysicalFloor, ABurstOfLoadWhileMeasuringAgainRejectsNothing) {
  int asked = 0;
  const auto burst = [&](const std::string&) {
    return Ceiling{"cpu", "gemm_fp32", "FLOP/s", ++asked < 3 ? 50e9 : 190e9};
  };
  EXPECT_FALSE(judge_floor({0, 19e9}, ceilings(20e9, 19e9, 4e9), "cpu", Dtype::kFp32, kCache, 0.11, burst).beyond);
  EXPECT_EQ(asked, 3);
}

TEST(PhysicalFloor, AnotherBoundThatIsStaleTooIsMeasuredAsWell) {
  Machine machine{ceilings(20e9, 190e9, 45e9), {}};
  const Cost cost{2e9, 19e9};  // 0.1 s by bytes and by flops
  EXPECT_FALSE(judged(cost, ceilings(2e9, 18e9, 4e9), machine, 0.1).beyond);
  EXPECT_EQ(machine.asked, (std::vector<std::string>{"gemm_fp32", "copy"}));
}

TEST(PhysicalFloor, InBf16BothRatesAreMeasuredAgain) {
  Machine machine{ceilings(20e9, 19e9, 190e9), {}};
  EXPECT_FALSE(judged({0, 19e9}, ceilings(20e9, 19e9, 4e9), machine, 0.1, Dtype::kBf16).beyond);
  EXPECT_EQ(machine.asked.size(), 2u);
}

TEST(PhysicalFloor, EveryModeHasItsRate) {
  std::vector<Ceiling> all = ceilings(20e9, 100e9, 400e9);
  const auto seconds = [&](Dtype dtype) { return floor_of({0, 400e9}, all, "cpu", dtype, 1e6).seconds; };
  EXPECT_DOUBLE_EQ(seconds(Dtype::kFp32), 4);
  EXPECT_DOUBLE_EQ(seconds(Dtype::kBf16), 1);
  EXPECT_DOUBLE_EQ(seconds(Dtype::kFp16), 1);
  EXPECT_DOUBLE_EQ(seconds(Dtype::kTf32), 4) << "a device without TF32 has fp32's rate";
  all.push_back(all.back());
  all.back().name = "gemm_tf32";
  all.back().value = 200e9;
  EXPECT_DOUBLE_EQ(seconds(Dtype::kTf32), 2);
  EXPECT_EQ(floor_of({0, 400e9}, all, "cpu", Dtype::kTf32, 1e6).ceilings,
            (std::vector<std::string>{"gemm_fp32", "gemm_tf32"}));
}

TEST(PhysicalFloor, NothingIsMeasuredForAPossibleTime) {
  Machine machine{ceilings(20e9, 190e9, 45e9), {}};
  EXPECT_FALSE(judged({0, 19e9}, machine.truth, machine, 0.2).beyond);
  EXPECT_TRUE(machine.asked.empty());
}

TEST(PhysicalFloor, DataThatFitsInCacheHasNoByteFloor) {
  Machine machine{ceilings(20e9, 190e9, 45e9), {}};
  EXPECT_FALSE(judged({kCache, 0}, machine.truth, machine, 1e-9).beyond);
}

TEST(Ceilings, UnknownNameIsRefused) { EXPECT_THROW(measure_cpu_ceiling("gemm_fp4"), Error); }

}  // namespace
}  // namespace twinbench

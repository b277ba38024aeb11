// What the engines do not ask of energy_flow.memory_lifetime: budgets that do not suffice, the pool's one trim and one
// more attempt, fragmentation, and reading a tape that was given up.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "src/energy_flow/common/lifetime_work.h"
#include "src/energy_flow/common/memory_pool.h"
#include "src/inputs.h"
#include "src/registry.h"

namespace twinbench::energy_flow::memory_lifetime {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kFlows = 64, kSteps = 8, kHidden = 16, kLayers = 2;
constexpr std::int64_t kNumbers = kFlows * kHidden;  // of a state

Setting setting_with(std::int64_t micro_steps, double budget, bool sins) {
  Setting setting;
  setting.input_case.name = "budget";
  setting.input_case.sizes = {{"micro_steps", micro_steps}, {"accumulation", 4}, {"flows", kFlows}, {"steps", kSteps},
                              {"hidden", kHidden},          {"layers", kLayers}};
  setting.input_case.options["budget"] = budget;
  if (!sins)
    for (const char* sin :
         {"trim_every_step", "resident_batches", "retained_tape", "attached_storage", "host_scan", "reset_peak"})
      setting.input_case.options[sin] = 0;
  return setting;
}

struct Outcome {
  std::optional<std::string> error;
  NamedTensors inputs, outputs;
  std::int64_t work(Work column) const { return outputs["work"].const_data_ptr<std::int64_t>()[column]; }
};

Outcome outcome_of(Variant variant, std::int64_t micro_steps, double budget, bool sins = true) {
  const Component& component = find_component("energy_flow.memory_lifetime");
  const Setting setting = completed(component.spec.signature, setting_with(micro_steps, budget, sins));
  Outcome outcome;
  outcome.inputs = generate_inputs(component.spec, setting, 5);
  const auto runnable = component.make(variant, Device(), outcome.inputs, setting);
  try {
    runnable->run();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    outcome.error = error.what();
  }
  outcome.outputs = runnable->outputs();
  return outcome;
}

constexpr std::int64_t kStatics = 2 * 2 * kLayers * 3 * kHidden * kHidden * 4;         // parameters and gradients
constexpr std::int64_t kWholeTape = (16 * kSteps * kLayers + kLayers) * kNumbers * 4;  // every operator's output
constexpr std::int64_t kLeastTape = 5 * kSteps * kLayers * kNumbers * 4;
constexpr std::int64_t kWorkspace = (3 + 3 + 1 + 1 + kLayers) * kNumbers * 4;  // of the optimized build

TEST(MemoryLifetime, TapesAreAsLongAsTheFormulasSay) {
  const Outcome baseline = outcome_of(Variant::kBaseline, 1, 0), least = outcome_of(Variant::kOptimized, 8, 0);
  EXPECT_EQ(baseline.work(kTapePeak), kWholeTape);
  EXPECT_EQ(least.work(kTapePeak), kLeastTape);
  EXPECT_EQ(least.work(kTapeLive), 0);
  // Pool statistics against the model of what is held: nothing else is.
  EXPECT_EQ(least.work(kPeak), kStatics + kWorkspace + kLeastTape);
}

TEST(MemoryLifetime, KeptTapesOverrunTheBudgetInTheSecondMicroStepAndReleasedOnesRunAHundred) {
  const auto budget = [](std::int64_t tape) {
    return static_cast<double>(kStatics + kWorkspace) + 1.5 * static_cast<double>(tape);
  };
  const Outcome first = outcome_of(Variant::kBaseline, 1, budget(kWholeTape));
  EXPECT_FALSE(first.error) << *first.error;
  const Outcome baseline = outcome_of(Variant::kBaseline, 2, budget(kWholeTape));
  ASSERT_TRUE(baseline.error);
  EXPECT_THAT(*baseline.error, HasSubstr("tape"));
  EXPECT_THAT(*baseline.error, HasSubstr("bytes requested"));
  EXPECT_THAT(*baseline.error, HasSubstr("live"));
  EXPECT_THAT(*baseline.error, HasSubstr("at the peak"));
  EXPECT_THAT(*baseline.error, HasSubstr("in the largest free block"));
  for (const char* name : {"weight_input", "weight_hidden"})
    EXPECT_TRUE(baseline.outputs[name].equal(baseline.inputs[name])) << "a failed window has moved " << name;
  const Outcome least = outcome_of(Variant::kOptimized, 100, budget(kLeastTape)),
                free = outcome_of(Variant::kOptimized, 100, 0);
  EXPECT_FALSE(least.error);
  EXPECT_EQ(least.work(kCacheTrim), 0);
  for (const char* name : {"weight_input", "weight_hidden", "loss"})
    EXPECT_TRUE(least.outputs[name].equal(free.outputs[name])) << name;
}

TEST(MemoryLifetime, ABudgetThatHoldsNoTapeNamesIt) {
  try {
    outcome_of(Variant::kOptimized, 1, static_cast<double>(kStatics + kWorkspace + kLeastTape / 2));
    FAIL() << "the tape did not fit";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    EXPECT_EQ(error.field(), "tape");
  }
}

TEST(MemoryLifetime, FiftyMicroStepsNeitherTrimNorFragment) {
  const Outcome kept = outcome_of(Variant::kOptimized, 50, 0), baseline = outcome_of(Variant::kBaseline, 6, 0);
  EXPECT_EQ(kept.work(kCacheTrim), 0);
  EXPECT_EQ(kept.work(kDevFree), 0);
  EXPECT_GT(kept.work(kTotalFree), 0);
  EXPECT_LE(1 - static_cast<double>(kept.work(kLargestFree)) / static_cast<double>(kept.work(kTotalFree)), 0.1);
  EXPECT_EQ(baseline.work(kCacheTrim), 6);
}

TEST(MemoryPool, ARefusedBlockCostsOneTrimAndOneMoreAttempt) {
  MemoryPool pool(1000);
  { const at::Tensor first = pool.take({640}, at::kByte); }
  const at::Tensor second = pool.take({320}, at::kByte);
  EXPECT_EQ(pool.counts().cache_trim, 0);
  EXPECT_EQ(pool.counts().reserved, 960);
  const at::Tensor third = pool.take({512}, at::kByte);  // the free 640 bytes go back first
  EXPECT_EQ(pool.counts().cache_trim, 1);
  EXPECT_EQ(pool.counts().reserved, 832);
  EXPECT_EQ(pool.counts().dev_free, 1);
  EXPECT_THROW(pool.take({256}, at::kByte), Error);
  EXPECT_EQ(pool.counts().cache_trim, 1) << "nothing was free: a trim would have been in vain";
  EXPECT_EQ(pool.counts().live, 832);
}

TEST(MemoryPool, TrimsUnderPressureOnlyAndOnlyWhatIsFree) {
  MemoryPool pool(1000);
  at::Tensor held = pool.take({512}, at::kByte), more = pool.take({448}, at::kByte);
  pool.relieve();
  EXPECT_EQ(pool.counts().cache_trim, 0) << "nothing is free";
  more.reset();
  pool.relieve();
  EXPECT_EQ(pool.counts().cache_trim, 1);
  EXPECT_EQ(pool.counts().reserved, 512);
  held.reset();
  pool.relieve();
  EXPECT_EQ(pool.counts().cache_trim, 1) << "half of the capacity is no pressure";
}

TEST(MemoryPool, ClassesAreServedAgainAndNothingTakesNothing) {
  MemoryPool pool(0);
  { const at::Tensor one = pool.take({1000}, at::kByte); }
  const at::Tensor again = pool.take({1020}, at::kByte);  // of the same class, 1,024 bytes
  EXPECT_EQ(pool.counts().dev_alloc, 1);
  EXPECT_EQ(pool.counts().peak, 1020);
  const at::Tensor none = pool.take({3, 0}, at::kFloat);
  EXPECT_EQ(none.numel(), 0);
  EXPECT_EQ(pool.counts().pool_alloc, 2);
  const PoolCounts counts = pool.counts();
  EXPECT_EQ(counts.free_blocks, 0);
}

TEST(TapeArena, APartThatWasGivenUpIsNotRead) {
  MemoryPool pool(0);
  TapeArena arena(pool, 100);
  const TapeArena::Part part = arena.take(60);
  arena.data(part)[59] = 1;
  EXPECT_THROW(arena.take(41), Error);
  EXPECT_EQ(arena.live_bytes(), 240);
  arena.reset();
  EXPECT_EQ(arena.live_bytes(), 0);
  EXPECT_EQ(arena.peak_bytes(), 240);
  try {
    arena.data(part);
    FAIL() << "a stale part was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    EXPECT_EQ(error.field(), "tape");
  }
}

}  // namespace
}  // namespace twinbench::energy_flow::memory_lifetime

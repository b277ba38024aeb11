// Compiled figures joined with counts: sampled blocks stand for the grid, and what is missing in a file is named.
#include "harness/model/kernel_figures.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "src/common/error.h"

namespace twinbench::model {
namespace {

const char* const kBudgets =
    R"({"kernels": {"demo::Copy": {"sm_90": {"registers": 30, "spill_store_bytes": 0, "warps_per_sm": 64}}}})";
const char* const kCode =
    R"({"kernels": {"demo::Copy": {"places": [["load"], ["store"]], "sm_90": {"instructions": 40, "loads_in_flight": 4,
        "pieces": [{"instructions": 40, "fma": 8, "at": [[0, 4], [1, 4]]}]}}}})";

CompiledKernels load(const std::string& budgets, const std::string& code) {
  const std::string first = testing::TempDir() + "budgets_test.json", second = testing::TempDir() + "code_test.json";
  std::ofstream(first) << budgets;
  std::ofstream(second) << code;
  return CompiledKernels::load(first, second);
}

TEST(KernelFigures, SampledBlocksStandForTheGrid) {
  const CompiledKernels kernels = load(kBudgets, kCode);
  const KernelFigures* figures = kernels.find("demo::Copy", "sm_90");
  ASSERT_NE(figures, nullptr);
  EXPECT_EQ(kernels.find("demo::Copy", "sm_120"), nullptr);
  kernels::simt::LaunchCounts counts;
  counts.grid = {100, 1, 1};
  counts.block = {256, 1, 1};
  counts.blocks = 10;
  counts.read_sectors = 320;
  counts.read_sectors_of_grid = 1600;  // some of them shared by all
  counts.written_sectors = 320;
  kernels::simt::SiteCounts load_site, store_site;
  load_site.requests = store_site.requests = 80;
  load_site.bytes = store_site.bytes = 4;
  load_site.units = store_site.units = 320;
  store_site.access = kernels::simt::Access::kWrite;
  counts.sites = {load_site, store_site};
  const LaunchWork work = work_of(counts, *figures);
  EXPECT_EQ(work.blocks, 100);
  EXPECT_EQ(work.memory_bytes, (1600 + 10 * 320) * 32);
  EXPECT_EQ(work.sectors, 6400);
  EXPECT_EQ(work.load_requests, 800);
  EXPECT_EQ(work.instructions, 1600 / 8 * 40);
  EXPECT_EQ(work.fma_instructions, 1600);
  EXPECT_EQ(work.loads_in_flight, 4);
}

// A loop of 2 products and one of 4 copies beside 10 instructions that each warp executes once.
TEST(KernelFigures, CodeAroundProductsAndCopiesIsExecutedAsOftenAsThey) {
  const char* const code =
      R"({"kernels": {"demo::Copy": {"places": [["load"], ["products"], ["shared load"], ["warps"]], "sm_90": {
          "instructions": 50, "loads_in_flight": 1, "copies_in_flight": 8, "pieces": [
            {"instructions": 10, "fma": 6, "at": [[3, 1]]},
            {"instructions": 20, "within": 0, "at": [[1, 2], [2, 12]]},
            {"instructions": 20, "within": 0, "at": [[0, 16]]}]}}}})";
  const CompiledKernels kernels = load(kBudgets, code);
  kernels::simt::LaunchCounts counts;
  counts.grid = {1, 1, 1};
  counts.block = {32, 1, 1};
  counts.blocks = 1;
  counts.bf16_products = 200;
  counts.matrix_loads = 300;
  counts.warp_operations = 507;
  counts.asynchronous_copies = 400 * 32;
  kernels::simt::SiteCounts copies, matrices;
  copies.requests = 400;
  matrices.requests = 300;
  copies.bytes = matrices.bytes = 16;
  matrices.shared = true;
  counts.sites = {copies, matrices};
  const LaunchWork work = work_of(counts, *kernels.find("demo::Copy", "sm_90"));
  EXPECT_NEAR(work.instructions, 100 * 20 + 100 * 20 + 10, 1e-6);
  EXPECT_NEAR(work.fma_instructions, 6, 1e-9);
  EXPECT_EQ(work.bf16_flops, 200 * 4096);
  EXPECT_EQ(work.copy_requests, 400);
  EXPECT_EQ(work.load_requests, 0);
  EXPECT_EQ(work.copies_in_flight, 8);
  EXPECT_EQ(work.warp_operations, 7);
}

TEST(KernelFigures, AMissingFieldIsNamed) {
  const auto refused = [](const std::string& budgets, const std::string& code) {
    try {
      load(budgets, code);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused("{}", kCode).find("budgets_test.json"), std::string::npos);
  EXPECT_NE(
      refused(kBudgets, R"({"kernels": {"demo::Copy": {"sm_90": {"instructions": 40}}}})").find("loads_in_flight"),
      std::string::npos);
  EXPECT_NE(refused(R"({"kernels": {"demo::Copy": {"sm_90": {"registers": 3}}}})", kCode).find("spill_store_bytes"),
            std::string::npos);
  const auto with = [&](const std::string& places, const std::string& pieces) {
    const std::string figures = R"("instructions": 40, "loads_in_flight": 4, "pieces": )" + pieces;
    return refused(kBudgets,
                   R"({"kernels": {"demo::Copy": {"places": )" + places + R"(, "sm_90": {)" + figures + "}}}}");
  };
  EXPECT_EQ(with(R"([["load"]])", R"([{"instructions": 40, "at": [[0, 4]]}])"), "");
  EXPECT_NE(with(R"([["load"]])", "[]").find("pieces are missing"), std::string::npos);
  EXPECT_NE(with(R"([["load", "a.h"]])", R"([{"instructions": 40}])").find("place"), std::string::npos);
  EXPECT_NE(with(R"([["load"]])", R"([{"instructions": 40, "at": [[1, 4]]}])").find("at [1,4]"), std::string::npos);
  EXPECT_NE(with("[]", R"([{"instructions": 40, "within": 0}])").find("within 0"), std::string::npos);
}

}  // namespace
}  // namespace twinbench::model

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
    R"({"kernels": {"demo::Copy": {"sm_90": {"instructions": 40, "loads_in_flight": 4, "global_loads": 4,
        "global_stores": 4, "fma": 8}}}})";

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
  counts.written_sectors = 320;
  kernels::simt::SiteCounts load_site, store_site;
  load_site.requests = store_site.requests = 80;
  load_site.units = store_site.units = 320;
  store_site.access = kernels::simt::Access::kWrite;
  counts.sites = {load_site, store_site};
  const LaunchWork work = work_of(counts, *figures);
  EXPECT_EQ(work.blocks, 100);
  EXPECT_EQ(work.memory_bytes, 10 * 640 * 32);
  EXPECT_EQ(work.sectors, 6400);
  EXPECT_EQ(work.load_requests, 800);
  EXPECT_EQ(work.instructions, 1600 / 8 * 40);  // five instructions an access
  EXPECT_EQ(work.fma_instructions, 1600);
  EXPECT_EQ(work.loads_in_flight, 4);
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
}

}  // namespace
}  // namespace twinbench::model

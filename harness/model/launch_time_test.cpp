// The model against kernels whose limits are known: it orders and scales as public measurements do.
//
// Measurements: github.com/te42kyfo/gpu-benches at 1c36d50, folders gpu-stream, gpu-small-kernels and gpu-latency, of
// an H200 where not said otherwise. Rates: NVIDIA's data sheets and the CUDA C++ Programming Guide.
#include "harness/model/launch_time.h"

#include <gtest/gtest.h>

#include <string>

#include "src/common/error.h"

namespace twinbench::model {
namespace {

constexpr double kTolerance = 0.4;  // what the model promises

Card card(const char* file) { return load_card(std::string(TWINBENCH_CARDS) + "/" + file); }
const Card& h200() {
  static const Card loaded = card("h200.json");
  return loaded;
}
const Card& rtx_5090() {
  static const Card loaded = card("rtx_5090.json");
  return loaded;
}

// gpu-stream: a thread an element of 8 bytes, two blocks a multiprocessor. Bytes a second, read and written.
double stream_bandwidth(const Card& on, double block_threads, double loads, double stores) {
  const double elements = 128.0 * 1024 * 1024, warps = elements / 32;
  LaunchWork work;
  work.blocks = elements / block_threads;
  work.threads_per_block = block_threads;
  work.warps_per_multiprocessor = 2 * block_threads / 32;
  work.memory_bytes = 8 * elements * (loads + stores);
  work.sectors = work.memory_bytes / 32;
  work.load_requests = loads * warps;
  work.loads_in_flight = loads;
  return work.memory_bytes / time_of(on, work).seconds;
}

TEST(LaunchTime, StreamingKernelsAtEveryOccupancy) {
  struct Row {
    double block_threads, init, read, scale, triad;  // GB/s
  };
  const Row rows[] = {{32, 297, 123, 240, 334},      {64, 590, 244, 463, 638},      {128, 1163, 485, 852, 1129},
                      {256, 2196, 935, 1395, 1905},  {512, 3670, 1707, 2263, 2919}, {768, 3891, 2297, 2844, 3333},
                      {1024, 3884, 2756, 3165, 3534}};
  double last = 0;
  for (const Row& row : rows) {
    const auto check = [&](const char* kernel, double loads, double stores, double measured) {
      const double modelled = stream_bandwidth(h200(), row.block_threads, loads, stores) / 1e9;
      EXPECT_LT(std::abs(modelled / measured - 1), kTolerance)
          << kernel << ", " << row.block_threads << " threads: modelled " << modelled << ", measured " << measured;
      return modelled;
    };
    check("init", 0, 1, row.init);
    const double read = check("read", 1, 0, row.read);
    check("scale", 1, 1, row.scale);
    check("triad", 2, 1, row.triad);
    EXPECT_GT(read, last);
    last = read;
  }
}

TEST(LaunchTime, ASmallKernelCostsItsLaunch) {
  LaunchWork work;  // 4,096 elements of 8 bytes, read and written: 48 GB/s in a graph on an H200, 61 on an L40
  work.blocks = 16;
  work.threads_per_block = 256;
  work.warps_per_multiprocessor = 64;
  work.memory_bytes = 2 * 8 * 4096;
  work.sectors = work.memory_bytes / 32;
  work.load_requests = 128;
  const ModelledTime time = time_of(h200(), work);
  EXPECT_NEAR(time.seconds, 65536 / 48e9, 0.2 * 65536 / 48e9);
  EXPECT_EQ(time.limiter, "launch") << time.seconds;
  EXPECT_NEAR(time_of(rtx_5090(), work).seconds, 65536 / 61e9, 0.2 * 65536 / 61e9);
}

LaunchWork full(const Card& on) {
  LaunchWork work;
  work.blocks = on.multiprocessors * 64;
  work.threads_per_block = 256;
  work.warps_per_multiprocessor = 48;
  return work;
}

TEST(LaunchTime, AStridedCopyPaysForEverySector) {
  for (const Card* on : {&h200(), &rtx_5090()}) {
    LaunchWork work = full(*on);
    work.loads_in_flight = 8;
    work.load_requests = 64 * work.blocks * 8;
    work.memory_bytes = work.load_requests * 128 * 2;
    work.sectors = work.memory_bytes / 32;
    const ModelledTime dense = time_of(*on, work);
    EXPECT_EQ(dense.limiter, "memory bandwidth") << on->name;
    work.memory_bytes *= 8;  // a stride of 8 floats: a sector a float
    work.sectors *= 8;
    EXPECT_NEAR(time_of(*on, work).seconds / dense.seconds, 8, 0.6) << on->name;
  }
}

TEST(LaunchTime, ABankConflictOfThirtyTwoIsThirtyTwoTimesAsLong) {
  for (const Card* on : {&h200(), &rtx_5090()}) {
    LaunchWork work = full(*on);
    work.wavefronts = 1e4 * work.blocks;
    work.instructions = 1.2e4 * work.blocks;
    const ModelledTime free = time_of(*on, work);
    work.wavefronts *= 32;
    const ModelledTime conflict = time_of(*on, work);
    EXPECT_EQ(conflict.limiter, "shared memory");
    EXPECT_NEAR(conflict.seconds / free.seconds, 32, 1) << on->name;
  }
  // One wavefront of 128 bytes a cycle: 33 and 52 TB/s.
  LaunchWork work = full(h200());
  work.wavefronts = 1e9;
  EXPECT_NEAR(128e9 / time_of(h200(), work).seconds, 33e12, 1e12);
  EXPECT_NEAR(128e9 / time_of(rtx_5090(), work).seconds, 52e12, 1e12);
}

TEST(LaunchTime, AChainOfLoadsTakesTheirLatencies) {
  LaunchWork work;  // a pointer chase by one warp
  work.blocks = 1;
  work.threads_per_block = 32;
  work.warps_per_multiprocessor = 32;
  work.load_requests = 10000;
  work.memory_bytes = 10000 * 32;
  work.sectors = 10000;
  const ModelledTime from_memory = time_of(h200(), work);
  EXPECT_NEAR(from_memory.seconds / 10000, 370e-9, 5e-9);
  work.in_l2 = true;
  EXPECT_NEAR(time_of(h200(), work).seconds / 10000, 151e-9, 5e-9);
  EXPECT_EQ(time_of(h200(), work).limiter, "loads in flight");
}

TEST(LaunchTime, ArithmeticReachesTheDataSheets) {
  LaunchWork work = full(h200());
  work.fma_instructions = work.instructions = 1e9;
  const ModelledTime fma = time_of(h200(), work);
  EXPECT_NEAR(2 * 32e9 / fma.seconds, 67e12, 1.5e12);
  EXPECT_NEAR(2 * 32e9 / time_of(rtx_5090(), work).seconds, 104.8e12, 1.5e12);
  work.special_instructions = 1e9;
  const ModelledTime special = time_of(h200(), work);
  EXPECT_EQ(special.limiter, "special functions");
  EXPECT_NEAR(special.seconds / fma.seconds, 8, 0.2);  // 16 lanes against 128
}

TEST(LaunchTime, ADependentChainOfArithmeticTakesFourCyclesEach) {
  LaunchWork work;
  work.blocks = 1;
  work.threads_per_block = 32;
  work.warps_per_multiprocessor = 32;
  work.dependent_instructions = work.instructions = work.fma_instructions = 1e6;
  EXPECT_NEAR(time_of(h200(), work).seconds * 1.98e9 / 1e6, 4, 0.05);
}

TEST(LaunchTime, FewBlocksLeaveMultiprocessorsIdle) {
  LaunchWork work = full(h200());
  work.instructions = 1e9;
  const double all = time_of(h200(), work).seconds;
  work.blocks = 33;
  EXPECT_NEAR(time_of(h200(), work).seconds / all, 4, 0.1);
}

// Tensor-core instructions of warps reach their own ceiling, where blocks fill whole rounds of multiprocessors, and do
// not wait for one another; copies wait in rounds of as many as are in flight.
TEST(LaunchTime, TensorCoresAndAsynchronousCopies) {
  for (const Card* on : {&h200(), &rtx_5090()}) {
    LaunchWork work = full(*on);
    work.bf16_flops = 1e12;
    const ModelledTime whole = time_of(*on, work);
    EXPECT_EQ(whole.limiter, "tensor cores");
    EXPECT_NEAR(work.bf16_flops / whole.seconds, on->mma_bf16, 0.01 * on->mma_bf16) << on->name;
    EXPECT_LE(on->mma_bf16, on->gemm_bf16);
    work.bf16_flops = 0;
    work.tf32_flops = 1e12;
    EXPECT_NEAR(time_of(*on, work).seconds / whole.seconds, 2, 0.02);
    work.blocks += 1;  // one block more: a round more
    EXPECT_NEAR(time_of(*on, work).seconds / whole.seconds, 2 * 65.0 / 64, 0.04);

    LaunchWork copies = full(*on);
    copies.blocks = on->multiprocessors;
    copies.copy_requests = copies.blocks * 8 * 400;
    copies.copies_in_flight = 4;
    copies.in_l2 = true;
    const double four = time_of(*on, copies).seconds;
    EXPECT_GT(four, 100 * on->l2_latency);
    copies.copies_in_flight = 16;
    EXPECT_LT(time_of(*on, copies).seconds, 0.4 * four);
  }
}

TEST(ProductTime, LargeProductsReachTheCeilingAndSmallOnesDoNot) {
  const auto rate = [](const Card& on, std::int64_t m, std::int64_t k, std::int64_t n, const char* dtype) {
    return 2.0 * m * k * n / time_of(on, ProductWork{1, m, k, n, dtype}).seconds;
  };
  for (const Card* on : {&h200(), &rtx_5090()}) {
    EXPECT_GT(rate(*on, 8192, 8192, 8192, "bf16"), 0.85 * on->gemm_bf16) << on->name;
    EXPECT_LE(rate(*on, 8192, 8192, 8192, "bf16"), on->gemm_bf16) << on->name;
    EXPECT_GT(rate(*on, 4096, 4096, 4096, "fp32"), 0.8 * on->gemm_fp32) << on->name;
    EXPECT_LT(rate(*on, 256, 256, 256, "bf16"), 0.12 * on->gemm_bf16) << on->name;
    // Rows that are no multiple of 16 bytes suit no tensor core.
    EXPECT_LT(rate(*on, 4096, 4095, 4096, "bf16"), 0.6 * rate(*on, 4096, 4096, 4096, "bf16"));
  }
  // 16 rows: the weights are read, and that is nearly all; in fp32 tiles of 16 rows come to half as much again.
  const auto against_weights = [](const char* dtype, double size) {
    return time_of(h200(), ProductWork{1, 16, 5000, 5000, dtype}).seconds /
           (size * 5000 * 5000 / h200().copy_bandwidth);
  };
  EXPECT_GT(against_weights("fp32", 4), 1.0);
  EXPECT_LT(against_weights("fp32", 4), 1.7);
  EXPECT_GT(against_weights("bf16", 2), 1.0);
  EXPECT_LT(against_weights("bf16", 2), 1.1);
}

TEST(ProductTime, NamesAreRead) {
  const ProductWork work = product_of("bmm 2x64x65x192 fp32");
  EXPECT_EQ(work.batch, 2);
  EXPECT_EQ(work.rows, 64);
  EXPECT_EQ(work.inner, 65);
  EXPECT_EQ(work.columns, 192);
  EXPECT_EQ(work.dtype, "fp32");
  EXPECT_EQ(product_of("mm 1x2x3 bf16").columns, 3);
  EXPECT_THROW(product_of("mm 1x2 bf16"), Error);
  EXPECT_THROW(time_of(h200(), product_of("mm 1x2x3 fp64")), Error);
}

}  // namespace
}  // namespace twinbench::model

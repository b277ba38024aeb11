// Counting and model together against measurements that others have published: cycles of an access by stride.
//
// What stands on which source: copies, small kernels and chains of loads (launch_time_test.cpp) on gpu-benches' folders
// gpu-stream, gpu-small-kernels and gpu-latency; bank conflicts on gpu-strides, here; arithmetic and special functions
// on the data sheets' rates and the CUDA C++ Programming Guide's table of arithmetic throughput (128 and 16 lanes for
// compute capability 9.0); dependent arithmetic on arXiv:2402.13499.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/model/launch_time.h"
#include "harness/simt/counting/warp_request.h"

namespace twinbench::model {
namespace {

// Cycles that a multiprocessor needs for one request of a warp whose lanes lie `stride` elements apart.
double modelled_cycles(const Card& on, std::uint32_t bytes, std::uint64_t stride) {
  kernels::simt::WarpRequest32 request{.bytes = bytes, .count = 32};
  for (std::size_t lane = 0; lane < 32; ++lane) {
    request.addresses[lane] = lane * stride * bytes;
    request.lanes[lane] = static_cast<std::uint8_t>(lane);
  }
  std::vector<kernels::simt::Interval> touched;
  const double requests = 1e7, wavefronts = static_cast<double>(cost_of_shared(request, touched).units);
  LaunchWork work;
  work.blocks = 1;
  work.threads_per_block = 1024;
  work.warps_per_multiprocessor = 32;
  work.wavefronts = requests * wavefronts;
  work.instructions = requests;
  return time_of(on, work).seconds * on.clock / requests;
}

// github.com/te42kyfo/gpu-benches at 1c36d50, gpu-strides/h200.txt, column cycles: reads through the L1 cache, whose
// data lies in the same 32 banks. Strides that are powers of two are limited by the banks alone.
TEST(PublicMeasurements, ConflictsOfBanksByStrideOnAnH200) {
  const Card h200 = load_card(std::string(TWINBENCH_CARDS) + "/h200.json");
  struct Row {
    std::uint32_t bytes;
    std::uint64_t stride;
    double cycles;
  };
  const Row rows[] = {{4, 1, 1.01}, {4, 2, 2.01}, {4, 4, 4.01}, {4, 8, 8.0},
                      {8, 1, 2.01}, {8, 2, 4.01}, {8, 4, 8.0},  {8, 8, 16.0}};
  for (const Row& row : rows)
    EXPECT_NEAR(modelled_cycles(h200, row.bytes, row.stride), row.cycles, 0.03 * row.cycles)
        << row.bytes << " bytes, stride " << row.stride;
  EXPECT_NEAR(modelled_cycles(h200, 4, 33), 1, 0.03);  // an odd stride of shared memory meets every bank once
}

}  // namespace
}  // namespace twinbench::model

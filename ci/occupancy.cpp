// Theoretical occupancy by CUDA's own calculator (cuda_occupancy.h), on the host, for two chips described here.
// Reads lines "sm_90|sm_120 registers static_shared_bytes dynamic_shared_bytes threads_per_block" and prints, for each,
// "blocks_per_sm warps_per_sm most_warps_per_sm". Exit 2 for a line it cannot judge.
#include <cuda_occupancy.h>

#include <iostream>
#include <string>

namespace {

// What cudaGetDeviceProperties says of an H100 or H200 (9.0) and of an RTX 5090 (12.0).
cudaOccDeviceProp device(const std::string& architecture) {
  cudaOccDeviceProp chip;
  const bool hopper = architecture == "sm_90";
  chip.computeMajor = hopper ? 9 : 12;
  chip.maxThreadsPerBlock = 1024;
  chip.maxThreadsPerMultiprocessor = hopper ? 2048 : 1536;
  chip.regsPerBlock = chip.regsPerMultiprocessor = 64 * 1024;
  chip.warpSize = 32;
  chip.sharedMemPerBlock = 48 * 1024;
  chip.sharedMemPerMultiprocessor = (hopper ? 228 : 100) * 1024;
  chip.sharedMemPerBlockOptin = (hopper ? 227 : 99) * 1024;
  chip.reservedSharedMemPerBlock = 1024;
  chip.numSms = hopper ? 132 : 170;
  return chip;
}

}  // namespace

int main() {
  std::string architecture;
  int registers = 0, threads = 0;
  std::size_t fixed_shared = 0, dynamic_shared = 0;
  while (std::cin >> architecture >> registers >> fixed_shared >> dynamic_shared >> threads) {
    if (architecture != "sm_90" && architecture != "sm_120") {
      std::cerr << "occupancy: unknown architecture " << architecture << '\n';
      return 2;
    }
    const cudaOccDeviceProp chip = device(architecture);
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = threads;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = fixed_shared;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;  // the launcher raises the limit beyond 48 KB
    kernel.maxDynamicSharedSizeBytes = dynamic_shared;
    kernel.numBlockBarriers = 1;
    const cudaOccDeviceState state;
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &chip, &kernel, &state, threads, dynamic_shared) !=
        CUDA_OCC_SUCCESS) {
      std::cerr << "occupancy: " << architecture << " with " << registers << " registers, " << fixed_shared << " + "
                << dynamic_shared << " bytes, " << threads << " threads is refused\n";
      return 2;
    }
    const int blocks = result.activeBlocksPerMultiprocessor;
    std::cout << blocks << ' ' << blocks * ((threads + 31) / 32) << ' ' << chip.maxThreadsPerMultiprocessor / 32
              << '\n';
  }
  return std::cin.eof() ? 0 : 2;
}

// Looks the driver's functions up by their exported names.
#include "harness/gpu/cuda_driver.h"

namespace twinbench {

CudaDriver::CudaDriver() : library("TWINBENCH_CUDA_LIBRARY", {"libcuda.so.1"}) {
  library.find("cuDriverGetVersion", version);
  library.find("cuInit", initialise);
  library.find("cuDeviceGetCount", device_count);
  library.find("cuDeviceGet", device);
  library.find("cuDeviceGetName", device_name);
  library.find("cuDeviceTotalMem_v2", total_memory);
  library.find("cuDeviceGetAttribute", attribute);
  library.find("cuDeviceGetPCIBusId", pci_bus_id);
  library.find("cuGetErrorName", error_name);
  library.find("cuCtxSynchronize", synchronise_context);
}

bool CudaDriver::complete() const {
  return version && initialise && device_count && device && device_name && total_memory && attribute && pci_bus_id &&
         error_name && synchronise_context;
}

std::string name_of(const CudaDriver& driver, CUresult code) {
  const char* name = nullptr;
  if (driver.error_name && driver.error_name(code, &name) == CUDA_SUCCESS && name) return name;
  return "CUDA_ERROR(" + std::to_string(static_cast<int>(code)) + ")";
}

}  // namespace twinbench

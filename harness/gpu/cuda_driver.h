// The few functions of the CUDA driver that the observers need, found at run time.
#pragma once

#include <cuda.h>

#include "harness/gpu/library.h"

namespace twinbench {

// TWINBENCH_CUDA_LIBRARY names another library than libcuda.so.1 (tests). Loading it initialises nothing.
struct CudaDriver {
  CudaDriver();

  RuntimeLibrary library;
  CUresult (*version)(int*) = nullptr;
  CUresult (*initialise)(unsigned int) = nullptr;
  CUresult (*device_count)(int*) = nullptr;
  CUresult (*device)(CUdevice*, int) = nullptr;
  CUresult (*device_name)(char*, int, CUdevice) = nullptr;
  CUresult (*total_memory)(size_t*, CUdevice) = nullptr;
  CUresult (*attribute)(int*, CUdevice_attribute, CUdevice) = nullptr;
  CUresult (*pci_bus_id)(char*, int, CUdevice) = nullptr;
  CUresult (*error_name)(CUresult, const char**) = nullptr;
  CUresult (*synchronise_context)() = nullptr;

  bool complete() const;  // every function is there
};

// "CUDA_ERROR_NO_DEVICE", or "CUDA_ERROR(<number>)" where the driver has no name.
std::string name_of(const CudaDriver& driver, CUresult code);

}  // namespace twinbench

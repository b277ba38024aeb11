// A CUDA driver without a card: FAKE_CUDA_VERSION, _INIT, _COUNT, _MAJOR, _MINOR, _BEHAVIOUR (crash, hang).
#include <cuda.h>
#include <unistd.h>

#include "harness/gpu/fake/environment.h"

extern "C" {

CUresult cuDriverGetVersion(int* version) {
  *version = static_cast<int>(fake::number("FAKE_CUDA_VERSION", 13000));
  return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int) {
  const auto behaviour = fake::text("FAKE_CUDA_BEHAVIOUR", "");
  if (behaviour == "crash") fake::crash();
  while (behaviour == "hang") pause();
  return static_cast<CUresult>(fake::number("FAKE_CUDA_INIT", CUDA_SUCCESS));
}

CUresult cuDeviceGetCount(int* count) {
  *count = static_cast<int>(fake::number("FAKE_CUDA_COUNT", 1));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  fake::copy("Fake card", name, static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = size_t{32} << 30;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = static_cast<int>(fake::number("FAKE_CUDA_MAJOR", 12));
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = static_cast<int>(fake::number("FAKE_CUDA_MINOR", 0));
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 7; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 12345; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice) {
  fake::copy("0000:3B:00.0", text, static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult code, const char** name) {
  *name = code == CUDA_ERROR_NO_DEVICE          ? "CUDA_ERROR_NO_DEVICE"
          : code == CUDA_ERROR_SYSTEM_NOT_READY ? "CUDA_ERROR_SYSTEM_NOT_READY"
                                                : nullptr;
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxSynchronize() { return CUDA_SUCCESS; }

}  // extern "C"

// A CUDA driver without a card: FAKE_CUDA_VERSION, _INIT, _COUNT, _MAJOR, _MINOR, _BEHAVIOUR (crash, hang).
#include <cuda.h>
#include <unistd.h>

#include "harness/gpu/fake/environment.h"

extern "C" {

CUresult cuDriverGetVersion(int* version) {
  FAKE_ANSWER(CUresult);
  *version = static_cast<int>(fake::number("FAKE_CUDA_VERSION", 13000));
  return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int) {
  FAKE_ANSWER(CUresult);
  const auto behaviour = fake::text("FAKE_CUDA_BEHAVIOUR", "");
  if (behaviour == "crash") fake::crash();
  while (behaviour == "hang") pause();
  return static_cast<CUresult>(fake::number("FAKE_CUDA_INIT", CUDA_SUCCESS));
}

CUresult cuDeviceGetCount(int* count) {
  FAKE_ANSWER(CUresult);
  *count = static_cast<int>(fake::number("FAKE_CUDA_COUNT", 1));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  FAKE_ANSWER(CUresult);
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  FAKE_ANSWER(CUresult);
  fake::copy("Fake card", name, static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  FAKE_ANSWER(CUresult);
  *bytes = size_t{32} << 30;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  FAKE_ANSWER(CUresult);
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
  FAKE_ANSWER(CUresult);
  fake::copy("0000:3B:00.0", text, static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult code, const char** name) {
  FAKE_ANSWER(CUresult);
  *name = code == CUDA_ERROR_NO_DEVICE          ? "CUDA_ERROR_NO_DEVICE"
          : code == CUDA_ERROR_SYSTEM_NOT_READY ? "CUDA_ERROR_SYSTEM_NOT_READY"
                                                : nullptr;
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxSynchronize() {
  FAKE_ANSWER(CUresult);
  return CUDA_SUCCESS;
}

}  // extern "C"

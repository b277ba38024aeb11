// A management library without a card: FAKE_NVML_INIT, _MIG, _PROCESSES ("12 34"), _UNSUPPORTED (a function that the
// card does not support), _BEHAVIOUR (crash, hang: where the power is read).
// Built a second time without throttle reasons.
#include <nvml.h>
#include <unistd.h>

#include <atomic>
#include <sstream>

#include "harness/gpu/fake/environment.h"

namespace {

int card = 0;
std::atomic<unsigned long long> energy_mj{1000};

nvmlReturn_t answer(const char* function) {
  return fake::text("FAKE_NVML_UNSUPPORTED", "") == function ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlInit_v2() {
  FAKE_ANSWER(nvmlReturn_t);
  return static_cast<nvmlReturn_t>(fake::number("FAKE_NVML_INIT", NVML_SUCCESS));
}
nvmlReturn_t nvmlShutdown() { return NVML_SUCCESS; }
const char* nvmlErrorString(nvmlReturn_t result) {
  return result == NVML_ERROR_DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* text, unsigned int length) {
  FAKE_ANSWER(nvmlReturn_t);
  fake::copy("580.65.06", text, length);
  return answer("nvmlSystemGetDriverVersion");
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int, nvmlDevice_t* device) {
  FAKE_ANSWER(nvmlReturn_t);
  *device = reinterpret_cast<nvmlDevice_t>(&card);
  return answer("nvmlDeviceGetHandleByIndex_v2");
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device) {
  FAKE_ANSWER(nvmlReturn_t);
  *device = reinterpret_cast<nvmlDevice_t>(&card);
  return std::string(id) == "0000:3B:00.0" ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t, char* text, unsigned int length) {
  FAKE_ANSWER(nvmlReturn_t);
  fake::copy("Fake card", text, length);
  return answer("nvmlDeviceGetName");
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t, char* text, unsigned int length) {
  FAKE_ANSWER(nvmlReturn_t);
  fake::copy("GPU-00000000-1111-2222-3333-444444444444", text, length);
  return answer("nvmlDeviceGetUUID");
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t* memory) {
  FAKE_ANSWER(nvmlReturn_t);
  *memory = {32ull << 30, 31ull << 30, 1ull << 30};
  return answer("nvmlDeviceGetMemoryInfo");
}
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t, nvmlClockType_t type, unsigned int* megahertz) {
  FAKE_ANSWER(nvmlReturn_t);
  *megahertz = type == NVML_CLOCK_SM ? 2400 : 14001;
  return answer("nvmlDeviceGetClockInfo");
}
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t, nvmlClockType_t type, unsigned int* megahertz) {
  FAKE_ANSWER(nvmlReturn_t);
  *megahertz = type == NVML_CLOCK_SM ? 3090 : 14001;
  return answer("nvmlDeviceGetMaxClockInfo");
}
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t, unsigned int* milliwatts) {
  FAKE_ANSWER(nvmlReturn_t);
  const auto behaviour = fake::text("FAKE_NVML_BEHAVIOUR", "");
  if (behaviour == "crash") fake::crash();
  while (behaviour == "hang") pause();
  *milliwatts = 321500;
  return answer("nvmlDeviceGetPowerUsage");
}
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t, unsigned int* milliwatts) {
  FAKE_ANSWER(nvmlReturn_t);
  *milliwatts = 575000;
  return answer("nvmlDeviceGetEnforcedPowerLimit");
}
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t, unsigned long long* millijoules) {
  FAKE_ANSWER(nvmlReturn_t);
  *millijoules = energy_mj.fetch_add(500);  // half a joule a reading
  return answer("nvmlDeviceGetTotalEnergyConsumption");
}
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t, nvmlTemperatureSensors_t, unsigned int* degrees) {
  FAKE_ANSWER(nvmlReturn_t);
  *degrees = 61;
  return answer("nvmlDeviceGetTemperature");
}
#ifndef FAKE_NVML_WITHOUT_THROTTLE_REASONS
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t, unsigned long long* bits) {
  FAKE_ANSWER(nvmlReturn_t);
  *bits = nvmlClocksEventReasonSwPowerCap | nvmlClocksThrottleReasonHwThermalSlowdown;
  return answer("nvmlDeviceGetCurrentClocksEventReasons");
}
#endif
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t, nvmlUtilization_t* rates) {
  FAKE_ANSWER(nvmlReturn_t);
  *rates = {97, 40};
  return answer("nvmlDeviceGetUtilizationRates");
}
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t, nvmlEnableState_t* current, nvmlEnableState_t* pending) {
  FAKE_ANSWER(nvmlReturn_t);
  *current = *pending = NVML_FEATURE_ENABLED;
  return answer("nvmlDeviceGetEccMode");
}
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t,
                                         unsigned long long* errors) {
  FAKE_ANSWER(nvmlReturn_t);
  *errors = 3;
  return answer("nvmlDeviceGetTotalEccErrors");
}
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t, unsigned int* current, unsigned int* pending) {
  FAKE_ANSWER(nvmlReturn_t);
  *current = *pending = static_cast<unsigned int>(fake::number("FAKE_NVML_MIG", 0));
  return answer("nvmlDeviceGetMigMode");
}
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t, nvmlEnableState_t* state) {
  FAKE_ANSWER(nvmlReturn_t);
  *state = NVML_FEATURE_DISABLED;
  return answer("nvmlDeviceGetPersistenceMode");
}
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t, int* major, int* minor) {
  FAKE_ANSWER(nvmlReturn_t);
  *major = 12;
  *minor = 0;
  return answer("nvmlDeviceGetCudaComputeCapability");
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned int* count, nvmlProcessInfo_t* processes) {
  FAKE_ANSWER(nvmlReturn_t);
  std::istringstream ids(fake::text("FAKE_NVML_PROCESSES", ""));
  unsigned int found = 0;
  for (unsigned int id = 0; ids >> id && found < *count; ++found) processes[found].pid = id;
  *count = found;
  return answer("nvmlDeviceGetComputeRunningProcesses_v3");
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t, unsigned int* count, nvmlProcessInfo_t*) {
  FAKE_ANSWER(nvmlReturn_t);
  *count = 0;
  return answer("nvmlDeviceGetGraphicsRunningProcesses_v3");
}

}  // extern "C"

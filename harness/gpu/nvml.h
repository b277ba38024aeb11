// The card as NVIDIA's management library (NVML) sees it, opened at run time: clocks, power, temperature, who else is
// there.
#pragma once

#include <nvml.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/gpu/library.h"
#include "harness/gpu/status.h"

namespace twinbench {

// One reading; what the card or the library does not give is absent, never 0.
struct NvmlSample {
  std::optional<double> utilisation_percent;  // share of the last 1/6 to 1 s in which any kernel ran: no measure of use
  std::optional<double> memory_utilisation_percent;
  std::optional<double> power_w, temperature_c;
  std::optional<double> sm_clock_mhz, memory_clock_mhz;
  std::optional<double> energy_j;  // since the driver was loaded
  std::optional<std::int64_t> memory_used_bytes;
  std::optional<std::uint64_t> throttle_bits;  // clocks event reasons
};

// What does not change from one second to the next.
struct NvmlCard {
  std::optional<std::string> name, uuid, driver_version;
  std::optional<std::int64_t> memory_bytes;
  std::optional<double> max_sm_clock_mhz, max_memory_clock_mhz, power_limit_w;
  std::optional<bool> ecc, mig, persistence;
  std::optional<std::int64_t> ecc_uncorrected_errors;  // since the driver was loaded
  std::optional<int> compute_major, compute_minor;
  std::optional<std::vector<std::int64_t>> other_processes;  // process ids, as the host counts them, without our own
};

// One card of one machine. TWINBENCH_NVML_LIBRARY names another library than libnvidia-ml.so.1 (tests).
class Nvml {
 public:
  // Starts the library and finds the card: by PCI bus id where one is given ("0000:3B:00.0"), else the first.
  explicit Nvml(const std::string& pci_bus_id = "");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool ready() const { return device_ != nullptr; }
  // Why it is not ready; or, where it is, which functions are missing or refused so far. Nothing where all answered.
  std::optional<GpuFinding> finding() const;

  NvmlCard card();
  NvmlSample sample();

 private:
  template <typename Function, typename... Arguments>
  bool ask(const char* name, Function function, Arguments... arguments);
  std::optional<double> clock(const char* name, nvmlClockType_t type, bool highest);
  void find_functions();

  RuntimeLibrary library_;
  nvmlDevice_t device_ = nullptr;
  bool started_ = false;
  GpuFinding failure_;
  std::vector<std::string> refused_;  // function and answer, each once

  decltype(&nvmlInit_v2) init_ = nullptr;
  decltype(&nvmlShutdown) shutdown_ = nullptr;
  decltype(&nvmlErrorString) error_string_ = nullptr;
  decltype(&nvmlSystemGetDriverVersion) driver_version_ = nullptr;
  decltype(&nvmlDeviceGetHandleByIndex_v2) by_index_ = nullptr;
  decltype(&nvmlDeviceGetHandleByPciBusId_v2) by_bus_id_ = nullptr;
  decltype(&nvmlDeviceGetName) name_ = nullptr;
  decltype(&nvmlDeviceGetUUID) uuid_ = nullptr;
  decltype(&nvmlDeviceGetMemoryInfo) memory_ = nullptr;
  decltype(&nvmlDeviceGetClockInfo) clock_ = nullptr;
  decltype(&nvmlDeviceGetMaxClockInfo) max_clock_ = nullptr;
  decltype(&nvmlDeviceGetPowerUsage) power_ = nullptr;
  decltype(&nvmlDeviceGetEnforcedPowerLimit) power_limit_ = nullptr;
  decltype(&nvmlDeviceGetTotalEnergyConsumption) energy_ = nullptr;
  nvmlReturn_t (*temperature_)(nvmlDevice_t, nvmlTemperatureSensors_t, unsigned int*) = nullptr;
  decltype(&nvmlDeviceGetCurrentClocksEventReasons) throttle_ = nullptr;
  decltype(&nvmlDeviceGetUtilizationRates) utilisation_ = nullptr;
  decltype(&nvmlDeviceGetEccMode) ecc_ = nullptr;
  decltype(&nvmlDeviceGetTotalEccErrors) ecc_errors_ = nullptr;
  decltype(&nvmlDeviceGetMigMode) mig_ = nullptr;
  decltype(&nvmlDeviceGetPersistenceMode) persistence_ = nullptr;
  decltype(&nvmlDeviceGetCudaComputeCapability) capability_ = nullptr;
  decltype(&nvmlDeviceGetComputeRunningProcesses_v3) compute_processes_ = nullptr;
  decltype(&nvmlDeviceGetGraphicsRunningProcesses_v3) graphics_processes_ = nullptr;
};

// The set bits by name: "sw_power_cap", "hw_thermal_slowdown", ...; empty where the card runs free.
std::vector<std::string> throttle_reasons(std::uint64_t bits);

// Absent values are null.
nlohmann::json to_json(const NvmlCard& card);
nlohmann::json to_json(const NvmlSample& sample);

}  // namespace twinbench

// Every question to NVML may be refused by itself; a refusal leaves its figure empty and is remembered.
#include "harness/gpu/nvml.h"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace twinbench {
namespace {

template <typename Value>
nlohmann::json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

void Nvml::find_functions() {
  library_.find("nvmlInit_v2", init_);
  library_.find("nvmlShutdown", shutdown_);
  library_.find("nvmlErrorString", error_string_);
  library_.find("nvmlSystemGetDriverVersion", driver_version_);
  library_.find("nvmlDeviceGetHandleByIndex_v2", by_index_);
  library_.find("nvmlDeviceGetHandleByPciBusId_v2", by_bus_id_);
  library_.find("nvmlDeviceGetName", name_);
  library_.find("nvmlDeviceGetUUID", uuid_);
  library_.find("nvmlDeviceGetMemoryInfo", memory_);
  library_.find("nvmlDeviceGetClockInfo", clock_);
  library_.find("nvmlDeviceGetMaxClockInfo", max_clock_);
  library_.find("nvmlDeviceGetPowerUsage", power_);
  library_.find("nvmlDeviceGetEnforcedPowerLimit", power_limit_);
  library_.find("nvmlDeviceGetTotalEnergyConsumption", energy_);
  library_.find("nvmlDeviceGetTemperature", temperature_);
  library_.find("nvmlDeviceGetCurrentClocksEventReasons", throttle_);
  library_.find("nvmlDeviceGetUtilizationRates", utilisation_);
  library_.find("nvmlDeviceGetEccMode", ecc_);
  library_.find("nvmlDeviceGetTotalEccErrors", ecc_errors_);
  library_.find("nvmlDeviceGetMigMode", mig_);
  library_.find("nvmlDeviceGetPersistenceMode", persistence_);
  library_.find("nvmlDeviceGetCudaComputeCapability", capability_);
  library_.find("nvmlDeviceGetComputeRunningProcesses_v3", compute_processes_);
  library_.find("nvmlDeviceGetGraphicsRunningProcesses_v3", graphics_processes_);
}

Nvml::Nvml(const std::string& pci_bus_id) : library_("TWINBENCH_NVML_LIBRARY", {"libnvidia-ml.so.1"}) {
  if (!library_.loaded()) {
    failure_ = {GpuStatus::kNvmlAbsent, library_.failure()};
    return;
  }
  find_functions();
  started_ = ask("nvmlInit_v2", init_);
  const bool found = started_ && (pci_bus_id.empty() ? ask("nvmlDeviceGetHandleByIndex_v2", by_index_, 0u, &device_)
                                                     : ask("nvmlDeviceGetHandleByPciBusId_v2", by_bus_id_,
                                                           pci_bus_id.c_str(), &device_));
  if (!found) {
    device_ = nullptr;
    failure_ = {GpuStatus::kNvmlIncomplete, refused_.empty() ? "" : refused_.back()};
  }
}

Nvml::~Nvml() {
  if (started_ && shutdown_) shutdown_();
}

template <typename Function, typename... Arguments>
bool Nvml::ask(const char* name, Function function, Arguments... arguments) {
  std::string answer = "missing";
  if (function) {
    const nvmlReturn_t result = function(arguments...);
    if (result == NVML_SUCCESS) return true;
    if (result == NVML_ERROR_NOT_SUPPORTED) return false;  // this card has no such thing: nothing to report
    const char* text = error_string_ ? error_string_(result) : nullptr;
    answer = text ? text : "error " + std::to_string(result);
  }
  const std::string refusal = std::string(name) + ": " + answer;
  if (std::find(refused_.begin(), refused_.end(), refusal) == refused_.end()) refused_.push_back(refusal);
  return false;
}

std::optional<GpuFinding> Nvml::finding() const {
  if (!ready()) return failure_;
  if (refused_.empty()) return std::nullopt;
  std::string all;
  for (const auto& one : refused_) all += (all.empty() ? "" : ", ") + one;
  return GpuFinding{GpuStatus::kNvmlIncomplete, all};
}

std::optional<double> Nvml::clock(const char* name, nvmlClockType_t type, bool highest) {
  unsigned int megahertz = 0;
  if (!ask(name, highest ? max_clock_ : clock_, device_, type, &megahertz)) return std::nullopt;
  return megahertz;
}

NvmlSample Nvml::sample() {
  NvmlSample sample;
  if (!ready()) return sample;
  nvmlUtilization_t utilisation{};
  if (ask("nvmlDeviceGetUtilizationRates", utilisation_, device_, &utilisation)) {
    sample.utilisation_percent = utilisation.gpu;
    sample.memory_utilisation_percent = utilisation.memory;
  }
  unsigned int value = 0;
  if (ask("nvmlDeviceGetPowerUsage", power_, device_, &value)) sample.power_w = value * 1e-3;
  if (ask("nvmlDeviceGetTemperature", temperature_, device_, NVML_TEMPERATURE_GPU, &value))
    sample.temperature_c = value;
  sample.sm_clock_mhz = clock("nvmlDeviceGetClockInfo(sm)", NVML_CLOCK_SM, false);
  sample.memory_clock_mhz = clock("nvmlDeviceGetClockInfo(memory)", NVML_CLOCK_MEM, false);
  unsigned long long large = 0;
  if (ask("nvmlDeviceGetTotalEnergyConsumption", energy_, device_, &large))
    sample.energy_j = static_cast<double>(large) * 1e-3;
  if (ask("nvmlDeviceGetCurrentClocksEventReasons", throttle_, device_, &large)) sample.throttle_bits = large;
  nvmlMemory_t memory{};
  if (ask("nvmlDeviceGetMemoryInfo", memory_, device_, &memory))
    sample.memory_used_bytes = static_cast<std::int64_t>(memory.used);
  return sample;
}

NvmlCard Nvml::card() {
  NvmlCard card;
  if (!ready()) return card;
  std::array<char, 256> text{};
  const auto length = static_cast<unsigned int>(text.size());
  if (ask("nvmlDeviceGetName", name_, device_, text.data(), length)) card.name = text.data();
  if (ask("nvmlDeviceGetUUID", uuid_, device_, text.data(), length)) card.uuid = text.data();
  if (ask("nvmlSystemGetDriverVersion", driver_version_, text.data(), length)) card.driver_version = text.data();
  nvmlMemory_t memory{};
  if (ask("nvmlDeviceGetMemoryInfo", memory_, device_, &memory))
    card.memory_bytes = static_cast<std::int64_t>(memory.total);
  card.max_sm_clock_mhz = clock("nvmlDeviceGetMaxClockInfo(sm)", NVML_CLOCK_SM, true);
  card.max_memory_clock_mhz = clock("nvmlDeviceGetMaxClockInfo(memory)", NVML_CLOCK_MEM, true);
  unsigned int value = 0, pending = 0;
  if (ask("nvmlDeviceGetEnforcedPowerLimit", power_limit_, device_, &value)) card.power_limit_w = value * 1e-3;
  if (ask("nvmlDeviceGetMigMode", mig_, device_, &value, &pending)) card.mig = value != 0;
  nvmlEnableState_t state{}, pending_state{};
  if (ask("nvmlDeviceGetEccMode", ecc_, device_, &state, &pending_state)) card.ecc = state == NVML_FEATURE_ENABLED;
  if (ask("nvmlDeviceGetPersistenceMode", persistence_, device_, &state))
    card.persistence = state == NVML_FEATURE_ENABLED;
  unsigned long long errors = 0;
  if (card.ecc.value_or(false) && ask("nvmlDeviceGetTotalEccErrors", ecc_errors_, device_,
                                      NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &errors))
    card.ecc_uncorrected_errors = static_cast<std::int64_t>(errors);
  int major = 0, minor = 0;
  if (ask("nvmlDeviceGetCudaComputeCapability", capability_, device_, &major, &minor)) {
    card.compute_major = major;
    card.compute_minor = minor;
  }
  std::array<nvmlProcessInfo_t, 256> processes{};
  std::vector<std::int64_t> others;
  bool answered = true;
  for (const auto& [name, function] : {std::pair{"nvmlDeviceGetComputeRunningProcesses_v3", compute_processes_},
                                       std::pair{"nvmlDeviceGetGraphicsRunningProcesses_v3", graphics_processes_}}) {
    auto count = static_cast<unsigned int>(processes.size());
    if (!ask(name, function, device_, &count, processes.data())) {
      answered = false;
      continue;
    }
    for (unsigned int i = 0; i < count; ++i)
      if (processes[i].pid != static_cast<unsigned int>(getpid())) others.push_back(processes[i].pid);
  }
  if (answered) {
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    card.other_processes = others;
  }
  return card;
}

std::vector<std::string> throttle_reasons(std::uint64_t bits) {
  static constexpr std::array<std::pair<std::uint64_t, const char*>, 9> kReasons = {{
      {nvmlClocksEventReasonGpuIdle, "gpu_idle"},
      {nvmlClocksEventReasonApplicationsClocksSetting, "applications_clocks_setting"},
      {nvmlClocksEventReasonSwPowerCap, "sw_power_cap"},
      {nvmlClocksThrottleReasonHwSlowdown, "hw_slowdown"},
      {nvmlClocksEventReasonSyncBoost, "sync_boost"},
      {nvmlClocksEventReasonSwThermalSlowdown, "sw_thermal_slowdown"},
      {nvmlClocksThrottleReasonHwThermalSlowdown, "hw_thermal_slowdown"},
      {nvmlClocksThrottleReasonHwPowerBrakeSlowdown, "hw_power_brake_slowdown"},
      {nvmlClocksEventReasonDisplayClockSetting, "display_clock_setting"},
  }};
  std::vector<std::string> names;
  std::uint64_t known = 0;
  for (const auto& [bit, name] : kReasons) {
    known |= bit;
    if (bits & bit) names.push_back(name);
  }
  if (bits & ~known) names.push_back("unknown");
  return names;
}

nlohmann::json to_json(const NvmlCard& card) {
  return {{"name", or_null(card.name)},
          {"memory_bytes", or_null(card.memory_bytes)},
          {"max_sm_clock_mhz", or_null(card.max_sm_clock_mhz)},
          {"max_memory_clock_mhz", or_null(card.max_memory_clock_mhz)},
          {"power_limit_w", or_null(card.power_limit_w)},
          {"ecc", or_null(card.ecc)},
          {"ecc_uncorrected_errors", or_null(card.ecc_uncorrected_errors)},
          {"mig", or_null(card.mig)},
          {"persistence", or_null(card.persistence)},
          {"other_processes",
           card.other_processes ? nlohmann::json(card.other_processes->size()) : nlohmann::json(nullptr)}};
}

nlohmann::json to_json(const NvmlSample& sample) {
  return {{"utilisation_percent", or_null(sample.utilisation_percent)},
          {"power_w", or_null(sample.power_w)},
          {"temperature_c", or_null(sample.temperature_c)},
          {"sm_clock_mhz", or_null(sample.sm_clock_mhz)},
          {"memory_clock_mhz", or_null(sample.memory_clock_mhz)},
          {"memory_used_bytes", or_null(sample.memory_used_bytes)},
          {"throttle_reasons",
           sample.throttle_bits ? nlohmann::json(throttle_reasons(*sample.throttle_bits)) : nlohmann::json(nullptr)}};
}

}  // namespace twinbench

// The child asks driver, NVML and CUPTI; its answer comes back as JSON through a pipe.
#include "harness/gpu/probe.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "harness/gpu/cupti_trace.h"
#include "harness/gpu/nvml.h"
#include "harness/gpu/pipe_text.h"

namespace twinbench {
namespace {

using nlohmann::json;

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The board by a hash only: records are published.
std::string hash_of(const std::string& text) {
  std::array<char, 16> hex{};
  std::snprintf(
      hex.data(), hex.size(), "%08lx",
      crc32(crc32(0L, Z_NULL, 0), reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
  return std::string("crc32:") + hex.data();
}

// What keeps the driver from starting; nothing where it runs.
std::optional<GpuFinding> start(const CudaDriver& driver) {
  if (!driver.library.loaded()) return GpuFinding{GpuStatus::kNoDriver, driver.library.failure()};
  int version = 0;
  if (!driver.version || driver.version(&version) != CUDA_SUCCESS)
    return GpuFinding{GpuStatus::kDriverFailed, "cuDriverGetVersion"};
  if (version < 13000)
    return GpuFinding{GpuStatus::kDriverTooOld, "it offers CUDA " + cuda_version_text(version) + ", 13.0 is needed"};
  if (!driver.complete()) return GpuFinding{GpuStatus::kDriverTooOld, "it lacks functions"};
  const CUresult started = driver.initialise(0);
  if (started != CUDA_SUCCESS)
    return GpuFinding{status_of(started) == GpuStatus::kNoDevice ? GpuStatus::kNoDevice : GpuStatus::kDriverFailed,
                      "cuInit: " + name_of(driver, started)};
  int count = 0;
  if (driver.device_count(&count) != CUDA_SUCCESS || count == 0) return GpuFinding{GpuStatus::kNoDevice, ""};
  return std::nullopt;
}

void add_management_view(const std::string& bus_id, GpuProbe& probe) {
  Nvml nvml(bus_id);
  const NvmlCard card = nvml.card();
  const NvmlSample now = nvml.sample();
  const auto finding = nvml.finding();
  if (finding) probe.findings.push_back(*finding);
  if (card.mig.value_or(false)) probe.findings.push_back({GpuStatus::kMigEnabled, ""});
  if (card.other_processes && !card.other_processes->empty())
    probe.findings.push_back({GpuStatus::kOtherProcesses, std::to_string(card.other_processes->size()) + " of them"});
  const json facts = to_json(card), state = to_json(now);
  for (const char* name : {"power_limit_w", "ecc", "ecc_uncorrected_errors", "mig", "persistence", "other_processes"})
    probe.card[name] = facts[name];
  for (const char* name : {"power_w", "temperature_c", "throttle_reasons"}) probe.card[name] = state[name];
  probe.card["uuid_hash"] = card.uuid ? json(hash_of(*card.uuid)) : json(nullptr);
  probe.card["driver"] = card.driver_version ? json(*card.driver_version) : json(nullptr);
  probe.card["clocks"] = {{"sm_mhz", state["sm_clock_mhz"]},
                          {"memory_mhz", state["memory_clock_mhz"]},
                          {"max_sm_mhz", facts["max_sm_clock_mhz"]},
                          {"max_memory_mhz", facts["max_memory_clock_mhz"]}};
}

GpuProbe ask(bool try_tracing) {
  GpuProbe probe;
  const CudaDriver driver;
  if (const auto obstacle = start(driver)) {
    probe.findings.push_back(*obstacle);
    return probe;
  }
  CUdevice device = 0;
  std::array<char, 256> name{}, bus_id{};
  std::size_t memory = 0;
  CUresult result = driver.device(&device, 0);
  if (result == CUDA_SUCCESS) result = driver.device_name(name.data(), static_cast<int>(name.size()), device);
  if (result == CUDA_SUCCESS) result = driver.total_memory(&memory, device);
  if (result == CUDA_SUCCESS) result = driver.pci_bus_id(bus_id.data(), static_cast<int>(bus_id.size()), device);
  if (result != CUDA_SUCCESS) {
    probe.findings.push_back({GpuStatus::kDriverFailed, name_of(driver, result)});
    return probe;
  }
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    return driver.attribute(&value, which, device) == CUDA_SUCCESS ? json(value) : json(nullptr);
  };
  const json major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
             minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  const std::string capability = (major.is_null() ? "?" : major.dump()) + "." + (minor.is_null() ? "?" : minor.dump());
  probe.card = {{"name", name.data()},
                {"memory_bytes", memory},
                {"compute_capability", capability},
                {"sm_count", attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)},
                {"l2_bytes", attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)}};
  if (major.is_null() || minor.is_null() || !architecture_is_covered(major, minor))
    probe.findings.push_back(
        {GpuStatus::kUnsupportedArchitecture, std::string(name.data()) + " has compute capability " + capability});
  probe.pci_bus_id = bus_id.data();
  add_management_view(bus_id.data(), probe);
  if (const auto refused = try_tracing ? CuptiTrace().start({}) : std::nullopt) probe.findings.push_back(*refused);
  json texts = json::array();
  for (const auto& finding : probe.findings) texts.push_back(finding.text());
  probe.card["findings"] = texts;
  return probe;
}

GpuProbe failed(const std::string& how) { return {{{GpuStatus::kDriverFailed, how}}, nullptr, ""}; }

}  // namespace

bool GpuProbe::usable() const {
  for (const auto& finding : findings)
    if (prevents_cuda(finding.status)) return false;
  return true;
}

std::string GpuProbe::reason() const {
  for (const auto& finding : findings)
    if (prevents_cuda(finding.status)) return finding.text();
  return "";
}

GpuProbe probe_gpu(double patience_s) {
  int ends[2];
  if (pipe(ends) != 0) return failed(std::string("pipe: ") + std::strerror(errno));
  std::fflush(nullptr);  // the child would write it a second time
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const GpuProbe probe = ask(/*try_tracing=*/true);
    json answer = {{"findings", json::array()}, {"card", probe.card}, {"pci_bus_id", probe.pci_bus_id}};
    for (const auto& finding : probe.findings)
      answer["findings"].push_back({static_cast<int>(finding.status), finding.detail});
    write_all(ends[1], answer.dump(-1, ' ', false, json::error_handler_t::replace));
    _exit(0);  // without the destructors and exit handlers of the parent
  }
  close(ends[1]);
  const std::string text = child > 0 ? read_all(ends[0], patience_s) : "";
  close(ends[0]);
  if (child < 0) return failed(std::string("fork: ") + std::strerror(errno));
  if (text.empty()) kill(child, SIGKILL);  // it is silent, or dead already: then this changes nothing
  int status = 0;
  waitpid(child, &status, 0);
  const json answer = json::parse(text, nullptr, false);
  if (answer.is_discarded()) {
    if (!WIFSIGNALED(status)) return failed("the probe gave no answer");
    if (WTERMSIG(status) == SIGKILL)
      return failed("no answer in " + std::to_string(static_cast<int>(patience_s)) + " s");
    return failed(std::string("the probe died of ") + strsignal(WTERMSIG(status)));
  }
  GpuProbe probe;
  for (const auto& finding : answer["findings"])
    probe.findings.push_back({static_cast<GpuStatus>(finding[0].get<int>()), finding[1]});
  probe.card = answer["card"];
  probe.pci_bus_id = answer["pci_bus_id"];
  if (!probe.usable()) probe.card = nullptr;
  return probe;
}

const GpuProbe& gpu_status_in_process() {
  static const GpuProbe probe = [] {
    GpuProbe asked = ask(/*try_tracing=*/false);
    if (!asked.usable()) asked.card = nullptr;
    return asked;
  }();
  return probe;
}

const GpuProbe& gpu_status() {
  static const GpuProbe probe = probe_gpu();
  return probe;
}

}  // namespace twinbench

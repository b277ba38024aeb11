// Names, meanings and remedies of the states, and CUDA errors recognised by name or wording.
#include "harness/gpu/status.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace twinbench {
namespace {

struct Description {
  GpuStatus status;
  const char *name, *meaning, *remedy;
};

constexpr std::array<Description, 20> kDescriptions = {{
    {GpuStatus::kReady, "ready", "the card can be used", ""},
    {GpuStatus::kNoDriver, "no_driver", "there is no NVIDIA driver on this machine (libcuda.so.1)",
     "install driver r580 or newer, start the container with --gpus all, or use --device cpu"},
    {GpuStatus::kDriverTooOld, "driver_too_old", "the NVIDIA driver is older than CUDA 13",
     "install driver r580 or newer, or use --device cpu"},
    {GpuStatus::kNoDevice, "no_device", "the driver shows this process no card",
     "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device cpu"},
    {GpuStatus::kUnsupportedArchitecture, "unsupported_architecture",
     "the kernels hold code for sm_90 and sm_120, and PTX for what is newer; none of it runs on this card",
     "use a Hopper card, or a Blackwell card of compute capability 12.0 or newer, or use --device cpu"},
    {GpuStatus::kDriverFailed, "driver_failed", "the CUDA driver does not start",
     "look at dmesg and nvidia-smi; restart the machine or its fabric manager"},
    {GpuStatus::kMigEnabled, "mig_enabled",
     "the card is divided (MIG): a part of it is measured, and what others do on it shows",
     "disable it for timings (nvidia-smi -mig 0), or compare only with records of the same profile"},
    {GpuStatus::kOtherProcesses, "other_processes", "other processes use the card and disturb timings",
     "stop them, or measure on another card (CUDA_VISIBLE_DEVICES)"},
    {GpuStatus::kNvmlAbsent, "nvml_absent",
     "the management library (libnvidia-ml.so.1) is not there: no clocks, power or temperature",
     "install it with the driver, or give the container the utility capability (NVIDIA_DRIVER_CAPABILITIES)"},
    {GpuStatus::kNvmlIncomplete, "nvml_incomplete", "the management library cannot answer everything",
     "those figures stay empty; a newer driver may have them"},
    {GpuStatus::kCuptiAbsent, "cupti_absent",
     "the tracing library (libcupti.so.13) is not there: no counts of device work",
     "it comes with the CUDA build of the torch wheel (nvidia-cuda-cupti); run ci/setup"},
    {GpuStatus::kCuptiTooOld, "cupti_too_old", "the tracing library is older than CUDA 13",
     "remove the older one from LD_LIBRARY_PATH, or run ci/setup"},
    {GpuStatus::kCuptiTooNew, "cupti_too_new",
     "the tracing library is newer than CUDA 13.0: its records may have another layout",
     "remove the newer one from LD_LIBRARY_PATH, or run ci/setup"},
    {GpuStatus::kCuptiBusy, "cupti_busy", "another tool traces this process already; only one can",
     "run without Nsight, compute-sanitizer, cuda-gdb or the LibTorch profiler"},
    {GpuStatus::kCuptiPermission, "cupti_permission", "tracing is not permitted to this user",
     "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"},
    {GpuStatus::kCuptiFailed, "cupti_failed", "the tracing library refuses",
     "check that driver and libcupti fit each other"},
    {GpuStatus::kRecordsDropped, "records_dropped", "records of device work were lost, so its counts are too low",
     "trace fewer runs, or a smaller case"},
    {GpuStatus::kOutOfMemory, "out_of_memory", "the card's memory is exhausted",
     "use a smaller case, or stop other processes on the card"},
    {GpuStatus::kStickyError, "sticky_error", "a fault on the card destroyed this process's context",
     "run this cell alone under compute-sanitizer (memcheck); other cells run in processes of their own"},
    {GpuStatus::kCudaError, "cuda_error", "a CUDA call failed",
     "run this cell alone with CUDA_LAUNCH_BLOCKING=1 to see which"},
}};

const Description& description_of(GpuStatus status) {
  for (const auto& description : kDescriptions)
    if (description.status == status) return description;
  return kDescriptions.back();
}

struct KnownError {
  const char *runtime_name, *driver_name, *wording;  // wording: the error string both libraries give
  int code;
  GpuStatus status;
};

// Errors with a state of their own, and all that destroy the context. Every other name is kCudaError.
constexpr std::array<KnownError, 22> kKnownErrors = {{
    {"cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory", 2, GpuStatus::kOutOfMemory},
    {"cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error", 3, GpuStatus::kDriverFailed},
    {"cudaErrorInsufficientDriver", "", "CUDA driver version is insufficient for CUDA runtime version", 35,
     GpuStatus::kDriverTooOld},
    {"cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected", 100, GpuStatus::kNoDevice},
    {"cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device", 209, GpuStatus::kUnsupportedArchitecture},
    {"cudaErrorECCUncorrectable", "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered", 214,
     GpuStatus::kStickyError},
    {"cudaErrorNvlinkUncorrectable", "CUDA_ERROR_NVLINK_UNCORRECTABLE",
     "uncorrectable NVLink error detected during the execution", 220, GpuStatus::kStickyError},
    {"cudaErrorUnsupportedPtxVersion", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain.", 222, GpuStatus::kDriverTooOld},
    {"cudaErrorContained", "CUDA_ERROR_CONTAINED", "Invalid access of peer GPU memory over nvlink or a hardware error",
     226, GpuStatus::kStickyError},
    {"cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered", 700,
     GpuStatus::kStickyError},
    {"cudaErrorLaunchTimeout", "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated", 702,
     GpuStatus::kStickyError},
    {"cudaErrorAssert", "CUDA_ERROR_ASSERT", "device-side assert triggered", 710, GpuStatus::kStickyError},
    {"cudaErrorHardwareStackError", "CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error", 714,
     GpuStatus::kStickyError},
    {"cudaErrorIllegalInstruction", "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered", 715,
     GpuStatus::kStickyError},
    {"cudaErrorMisalignedAddress", "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address", 716, GpuStatus::kStickyError},
    {"cudaErrorInvalidAddressSpace", "CUDA_ERROR_INVALID_ADDRESS_SPACE",
     "operation not supported on global/shared address space", 717, GpuStatus::kStickyError},
    {"cudaErrorInvalidPc", "CUDA_ERROR_INVALID_PC", "invalid program counter", 718, GpuStatus::kStickyError},
    {"cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure", 719, GpuStatus::kStickyError},
    {"cudaErrorTensorMemoryLeak", "CUDA_ERROR_TENSOR_MEMORY_LEAK", "tensor memory not completely freed", 721,
     GpuStatus::kStickyError},
    {"cudaErrorSystemNotReady", "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized", 802,
     GpuStatus::kDriverFailed},
    {"cudaErrorSystemDriverMismatch", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "unsupported display driver / cuda driver combination", 803, GpuStatus::kDriverFailed},
    {"cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error", 999, GpuStatus::kStickyError},
}};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// The first word of `text` that starts with `prefix` and has more letters, digits or underscores after it.
std::string word_with(std::string_view text, std::string_view prefix) {
  for (auto start = text.find(prefix); start != std::string_view::npos; start = text.find(prefix, start + 1)) {
    auto end = start + prefix.size();
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
    if (end > start + prefix.size()) return std::string(text.substr(start, end - start));
  }
  return "";
}

GpuStatus status_of_name(const std::string& name) {
  for (const auto& known : kKnownErrors)
    if (name == known.runtime_name || name == known.driver_name) return known.status;
  if (name == "CUBLAS_STATUS_ALLOC_FAILED" || name == "CUDNN_STATUS_ALLOC_FAILED") return GpuStatus::kOutOfMemory;
  if (name == "CUBLAS_STATUS_ARCH_MISMATCH" || name == "CUDNN_STATUS_ARCH_MISMATCH")
    return GpuStatus::kUnsupportedArchitecture;
  return GpuStatus::kCudaError;
}

}  // namespace

const char* name_of(GpuStatus status) { return description_of(status).name; }
const char* meaning_of(GpuStatus status) { return description_of(status).meaning; }
const char* remedy_of(GpuStatus status) { return description_of(status).remedy; }

bool prevents_cuda(GpuStatus status) {
  return status == GpuStatus::kNoDriver || status == GpuStatus::kDriverTooOld || status == GpuStatus::kNoDevice ||
         status == GpuStatus::kUnsupportedArchitecture || status == GpuStatus::kDriverFailed;
}

std::string GpuFinding::text() const {
  std::string text = std::string(name_of(status)) + ": " + meaning_of(status);
  if (!detail.empty()) text += " (" + detail + ")";
  if (*remedy_of(status)) text += "; " + std::string(remedy_of(status));
  return text;
}

std::string CudaFailure::text() const {
  return "CUDA_ERROR(" + name + "): " + meaning_of(status) + "; " + remedy_of(status);
}

std::optional<CudaFailure> cuda_failure_in(std::string_view message) {
  for (const char* prefix :
       {"cudaError", "CUDA_ERROR_", "CUBLAS_STATUS_", "CUDNN_STATUS_", "CUSPARSE_STATUS_", "CUSOLVER_STATUS_"}) {
    const std::string name = word_with(message, prefix);
    if (!name.empty()) return CudaFailure{status_of_name(name), name};
  }
  if (contains(message, "Found no NVIDIA driver"))
    return CudaFailure{GpuStatus::kNoDriver, "cudaErrorInsufficientDriver"};
  if (!contains(message, "CUDA error") && !contains(message, "CUDA driver error") &&
      !contains(message, "CUDA out of memory"))
    return std::nullopt;
  for (const auto& known : kKnownErrors)
    if (contains(message, known.wording)) return CudaFailure{known.status, known.runtime_name};
  return CudaFailure{GpuStatus::kCudaError, "unnamed"};
}

GpuStatus status_of(CUresult code) {
  if (code == CUDA_SUCCESS) return GpuStatus::kReady;
  for (const auto& known : kKnownErrors)
    if (known.code == static_cast<int>(code)) return known.status;
  return GpuStatus::kCudaError;
}

bool architecture_is_covered(int major, int minor) {
  // sm_90 code runs on 9.x; sm_120 code on 12.x; compute_120 PTX is compiled for anything from 12.0 on.
  return major == 9 || (major >= 12 && minor >= 0);
}

}  // namespace twinbench

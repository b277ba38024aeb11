// What can be wrong with a GPU, its driver or its observers: each state has a name, a reason and a remedy. Torch-free.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/gpu/cuda_driver.h"

namespace twinbench {

enum class GpuStatus {
  kReady,
  // No CUDA cell can run.
  kNoDriver,                 // libcuda is not there
  kDriverTooOld,             // the driver is older than CUDA 13
  kNoDevice,                 // a driver, but no card that this process may see
  kUnsupportedArchitecture,  // older than sm_90, or between what the kernels were compiled for
  kDriverFailed,             // cuInit answers something else
  // CUDA cells run, but a figure is missing or disturbed.
  kMigEnabled,
  kOtherProcesses,
  kNvmlAbsent,
  kNvmlIncomplete,  // a function of NVML is missing or refuses
  // Tracing of device work is missing or not complete.
  kCuptiAbsent,
  kCuptiTooOld,
  kCuptiTooNew,
  kCuptiBusy,  // another tool holds the one subscription of this process
  kCuptiPermission,
  kCuptiFailed,
  kRecordsDropped,
  // One job failed; the others go on in processes of their own.
  kOutOfMemory,
  kStickyError,  // the context is lost: every later call in that process fails the same way
  kCudaError,    // any other error of a CUDA call
};

// "no_driver", "driver_too_old", ...: the stable name in records, tests and messages.
const char* name_of(GpuStatus status);
// What it means, one sentence without figures.
const char* meaning_of(GpuStatus status);
// What to do about it. Empty for kReady.
const char* remedy_of(GpuStatus status);
// True where no CUDA cell can run at all.
bool prevents_cuda(GpuStatus status);

// One state that was found, with the particulars ("driver 12.4, CUDA 13.0 is needed").
struct GpuFinding {
  GpuStatus status = GpuStatus::kReady;
  std::string detail;

  std::string text() const;  // "driver_too_old: <meaning>: <detail>; <remedy>"
};

// A failed CUDA call, recognised in the text of an exception or in the last output of a process.
struct CudaFailure {
  GpuStatus status = GpuStatus::kCudaError;  // kOutOfMemory, kStickyError, kNoDevice, ... or kCudaError
  std::string name;                          // "cudaErrorIllegalAddress"; "CUDA_ERROR" where the text names none
  std::string text() const;                  // "CUDA_ERROR(cudaErrorIllegalAddress): <meaning>; <remedy>"
};

// Nothing where `message` speaks of no CUDA error. Understands names of the runtime (cudaErrorX), of the driver
// (CUDA_ERROR_X), the wording of both libraries' error strings, and the sentences LibTorch wraps them in.
std::optional<CudaFailure> cuda_failure_in(std::string_view message);

// The state a result code of the driver stands for; kReady for CUDA_SUCCESS.
GpuStatus status_of(CUresult code);

// What of sm_90, sm_120 and PTX of the latter runs on compute capability major.minor: cubins run within their major
// version, PTX on anything newer.
bool architecture_is_covered(int major, int minor);

}  // namespace twinbench

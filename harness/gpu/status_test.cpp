// Every state has its words, and CUDA errors are recognised in what other libraries say.
#include "harness/gpu/status.h"

#include <gtest/gtest.h>

#include <set>

namespace twinbench {
namespace {

TEST(GpuStatus, EveryStateHasAnOwnNameAMeaningAndARemedy) {
  std::set<std::string> names;
  for (int value = 0; value <= static_cast<int>(GpuStatus::kCudaError); ++value) {
    const auto status = static_cast<GpuStatus>(value);
    EXPECT_TRUE(names.insert(name_of(status)).second) << name_of(status);
    EXPECT_NE(std::string(meaning_of(status)), "");
    EXPECT_EQ(std::string(remedy_of(status)).empty(), status == GpuStatus::kReady) << name_of(status);
  }
}

struct Message {
  const char *text, *name;
  GpuStatus status;
};

class CudaMessage : public testing::TestWithParam<Message> {};

TEST_P(CudaMessage, IsRecognised) {
  const auto failure = cuda_failure_in(GetParam().text);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->name, GetParam().name);
  EXPECT_EQ(failure->status, GetParam().status) << name_of(failure->status);
  EXPECT_NE(failure->text().find(std::string("CUDA_ERROR(") + GetParam().name + ")"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    OfEveryLibrary, CudaMessage,
    testing::Values(
        Message{"CUDA error: an illegal memory access was encountered\nSearch for `cudaErrorIllegalAddress' in "
                "https://docs.nvidia.com",
                "cudaErrorIllegalAddress", GpuStatus::kStickyError},
        Message{"CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported",
                "cudaErrorAssert", GpuStatus::kStickyError},
        Message{"CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 31 GiB",
                "cudaErrorMemoryAllocation", GpuStatus::kOutOfMemory},
        Message{"CUDA error: no kernel image is available for execution on the device",
                "cudaErrorNoKernelImageForDevice", GpuStatus::kUnsupportedArchitecture},
        Message{"a.cu:7: cudaMemcpyAsync(...) failed: cudaErrorInvalidValue (invalid argument)",
                "cudaErrorInvalidValue", GpuStatus::kCudaError},
        Message{"CUDA driver error: unspecified launch failure", "cudaErrorLaunchFailure", GpuStatus::kStickyError},
        Message{"cuLaunchKernel: CUDA_ERROR_MISALIGNED_ADDRESS", "CUDA_ERROR_MISALIGNED_ADDRESS",
                GpuStatus::kStickyError},
        Message{"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                "CUBLAS_STATUS_ALLOC_FAILED", GpuStatus::kOutOfMemory},
        Message{"cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "CUDNN_STATUS_EXECUTION_FAILED", GpuStatus::kCudaError},
        Message{"CUDA error: CUDA driver version is insufficient for CUDA runtime version",
                "cudaErrorInsufficientDriver", GpuStatus::kDriverTooOld},
        Message{"Found no NVIDIA driver on your system. Please check", "cudaErrorInsufficientDriver",
                GpuStatus::kNoDriver},
        Message{"CUDA error: something this table has never heard of", "unnamed", GpuStatus::kCudaError}));

TEST(CudaFailure, OtherMessagesAreNotCudas) {
  for (const char* text : {"", "expected scalar type Float", "out of memory", "misaligned address",
                           "the CUDA device is missing", "cudaError"})
    EXPECT_FALSE(cuda_failure_in(text).has_value()) << text;
}

TEST(GpuStatus, CodesOfTheDriver) {
  EXPECT_EQ(status_of(CUDA_SUCCESS), GpuStatus::kReady);
  EXPECT_EQ(status_of(CUDA_ERROR_OUT_OF_MEMORY), GpuStatus::kOutOfMemory);
  EXPECT_EQ(status_of(CUDA_ERROR_NO_DEVICE), GpuStatus::kNoDevice);
  EXPECT_EQ(status_of(CUDA_ERROR_ILLEGAL_ADDRESS), GpuStatus::kStickyError);
  EXPECT_EQ(status_of(CUDA_ERROR_INVALID_VALUE), GpuStatus::kCudaError);
}

TEST(GpuStatus, CoverageOfTheCompiledKernels) {
  EXPECT_TRUE(architecture_is_covered(9, 0));
  EXPECT_TRUE(architecture_is_covered(12, 0));
  EXPECT_TRUE(architecture_is_covered(12, 1));
  EXPECT_TRUE(architecture_is_covered(13, 0));
  EXPECT_FALSE(architecture_is_covered(8, 9));
  EXPECT_FALSE(architecture_is_covered(7, 5));
  EXPECT_FALSE(architecture_is_covered(10, 0)) << "neither sm_90 code nor PTX of sm_120 runs there";
}

TEST(GpuFinding, SaysWhatItMeansAndWhatToDo) {
  const GpuFinding finding{GpuStatus::kDriverTooOld, "it offers CUDA 12.4, 13.0 is needed"};
  EXPECT_EQ(finding.text().rfind("driver_too_old: ", 0), 0u);
  EXPECT_NE(finding.text().find("12.4"), std::string::npos);
  EXPECT_NE(finding.text().find("r580"), std::string::npos);
}

}  // namespace
}  // namespace twinbench

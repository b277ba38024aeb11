// Turns CUDA runtime error codes into exceptions that say which call failed, where and how. For files that see CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace twinbench::kernels {

// A CUDA call failed. The message holds everything below.
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const char* expression, const char* file, int line)
      : std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + expression +
                           " failed: " + cudaGetErrorName(code) + " (" + cudaGetErrorString(code) + ")"),
        code_(code),
        expression_(expression),
        file_(file),
        line_(line) {}

  cudaError_t code() const { return code_; }
  const char* name() const { return cudaGetErrorName(code_); }
  const std::string& expression() const { return expression_; }
  const char* file() const { return file_; }
  int line() const { return line_; }

 private:
  cudaError_t code_;
  std::string expression_;
  const char* file_;
  int line_;
};

inline void check_cuda(cudaError_t code, const char* expression, const char* file, int line) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // clears a non-sticky error, so that the next check does not report this one again
  throw CudaError(code, expression, file, line);
}

}  // namespace twinbench::kernels

// Throws CudaError unless the call returns cudaSuccess: also on machines without a GPU (error 35), where nothing else
// warns.
#define TWINBENCH_CUDA_CHECK(call) ::twinbench::kernels::check_cuda((call), #call, __FILE__, __LINE__)

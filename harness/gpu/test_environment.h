// Environment variables for the length of one test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace twinbench {

class TestVariable {
 public:
  TestVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~TestVariable() {
    if (before_) setenv(name_.c_str(), before_->c_str(), 1);
    else unsetenv(name_.c_str());
  }
  TestVariable(const TestVariable&) = delete;
  TestVariable& operator=(const TestVariable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

// All three libraries are the fakes that the build made beside the test.
struct FakeCard {
  TestVariable cuda{"TWINBENCH_CUDA_LIBRARY", TWINBENCH_FAKE_CUDA}, nvml{"TWINBENCH_NVML_LIBRARY", TWINBENCH_FAKE_NVML},
      cupti{"TWINBENCH_CUPTI_LIBRARY", TWINBENCH_FAKE_CUPTI};
};

}  // namespace twinbench

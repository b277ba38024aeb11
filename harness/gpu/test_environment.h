// Environment variables for the length of one test.
#pragma once

#include <cstdlib>
#include <filesystem>
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
    if (before_)
      setenv(name_.c_str(), before_->c_str(), 1);
    else
      unsetenv(name_.c_str());
  }
  TestVariable(const TestVariable&) = delete;
  TestVariable& operator=(const TestVariable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

// A driver library that the build made: <build>/fake, beside the tests' <build>/bin. Found at run time, so that no
// test's object depends on the folder it is built in.
inline std::string fake_library(const std::string& name) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  return (program.parent_path().parent_path() / "fake" / ("libfake_" + name + ".so")).string();
}

// All three libraries are the fakes that the build made beside the test.
struct FakeCard {
  TestVariable cuda{"TWINBENCH_CUDA_LIBRARY", fake_library("cuda")},
      nvml{"TWINBENCH_NVML_LIBRARY", fake_library("nvml")}, cupti{"TWINBENCH_CUPTI_LIBRARY", fake_library("cupti")};
};

}  // namespace twinbench

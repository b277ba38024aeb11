// A shared library opened at run time, so that the program starts on machines that do not have it.
#pragma once

#include <string>
#include <vector>

namespace twinbench {

// Opens the path in the environment variable, if it is set, else the first of `names` that the loader finds.
class RuntimeLibrary {
 public:
  RuntimeLibrary(const char* environment_variable, const std::vector<std::string>& names);
  ~RuntimeLibrary();
  RuntimeLibrary(RuntimeLibrary&& other) noexcept;
  RuntimeLibrary(const RuntimeLibrary&) = delete;
  RuntimeLibrary& operator=(const RuntimeLibrary&) = delete;

  bool loaded() const { return handle_ != nullptr; }
  const std::string& failure() const { return failure_; }  // what the loader said

  // Null where the library lacks the function.
  template <typename Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(address(name));
  }

 private:
  void* address(const char* name) const;

  void* handle_ = nullptr;
  std::string failure_;
};

}  // namespace twinbench

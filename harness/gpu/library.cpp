// dlopen and dlsym.
#include "harness/gpu/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

namespace twinbench {

RuntimeLibrary::RuntimeLibrary(const char* environment_variable, const std::vector<std::string>& names) {
  const char* given = std::getenv(environment_variable);
  const std::vector<std::string> candidates = given ? std::vector<std::string>{given} : names;
  for (const auto& name : candidates) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) return;
    const char* reason = dlerror();
    failure_ += (failure_.empty() ? "" : "; ") + std::string(reason ? reason : name + " cannot be opened");
  }
}

RuntimeLibrary::RuntimeLibrary(RuntimeLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), failure_(std::move(other.failure_)) {}

RuntimeLibrary::~RuntimeLibrary() {
  if (handle_) dlclose(handle_);
}

void* RuntimeLibrary::address(const char* name) const { return handle_ ? dlsym(handle_, name) : nullptr; }

}  // namespace twinbench

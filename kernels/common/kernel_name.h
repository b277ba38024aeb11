// A kernel's name as its source has it.
#pragma once

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>

namespace twinbench::kernels::simt {

template <class Kernel>
std::string kernel_name() {
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(typeid(Kernel).name(), nullptr, nullptr, nullptr), std::free);
  return text ? text.get() : typeid(Kernel).name();
}

}  // namespace twinbench::kernels::simt

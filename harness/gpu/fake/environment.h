// How the fake driver libraries are told what to answer: environment variables, read at every call.
#pragma once

#include <signal.h>

#include <cstdlib>
#include <string>

namespace fake {

inline std::string text(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

inline long number(const char* name, long otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atol(value) : otherwise;
}

inline void copy(const std::string& from, char* to, std::size_t capacity) {
  if (capacity > 0) to[from.copy(to, capacity - 1)] = '\0';
}

// As a broken driver would: a sanitizer's handler must not turn it into an exit code.
inline void crash() {
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

}  // namespace fake

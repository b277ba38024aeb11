// How the fake driver libraries are told what to answer: environment variables, read at every call. In all of them:
// FAKE_REFUSE, a function that answers "unknown error" (999, whichever library it is of) or ends as FAKE_REFUSE_BY says
// (crash, hang); "cuptiActivityEnable:3": only when it is called for the third time in this process.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
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

// The result code of that function's call: 999 where it is to be refused, else 0.
inline int refused(const char* function) {
  static std::map<std::string, long> calls;
  const std::string wanted = text("FAKE_REFUSE", "");
  const auto colon = wanted.find(':');
  if (wanted.substr(0, colon) != function) return 0;
  if (colon != std::string::npos && ++calls[function] != std::atol(wanted.c_str() + colon + 1)) return 0;
  const std::string by = text("FAKE_REFUSE_BY", "");
  if (by == "crash") crash();
  while (by == "hang") pause();
  return 999;
}

}  // namespace fake

// First thing in a function of such a library: it sets nothing where it is refused.
#define FAKE_ANSWER(type) \
  if (const int code = fake::refused(__func__)) return static_cast<type>(code)

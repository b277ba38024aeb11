// What a run asks of the process itself: memory from the plain heap or the system, threads for pieces of its work.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace twinbench {

// Counts every thread's calls while it lives. The functions are this program's own, in front of the C library's and
// OpenMP's: in builds with a sanitizer, which has its own too, nothing is counted. One at a time in a process.
class ProcessCallScope {
 public:
  ProcessCallScope();
  ~ProcessCallScope();
  ProcessCallScope(const ProcessCallScope&) = delete;
  ProcessCallScope& operator=(const ProcessCallScope&) = delete;

  // "heap": malloc, calloc, realloc and their kin, `new` too; "mmap" and mremap; "threads" started; "parallel":
  // regions of OpenMP, which at::parallel_for enters with more than one piece only. Names with a count of 0 are left
  // out.
  std::map<std::string, std::int64_t> counts() const;
  static bool counts_here();  // false with a sanitizer
};

}  // namespace twinbench

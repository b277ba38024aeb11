// Host stand-in for device memory, between pages that may not be touched: one element too far becomes a finding.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace twinbench::kernels::simt {

// The untyped part. The data end at the guard page that follows them, up to `alignment` rounding; the bytes left free
// before and after them are filled with a pattern that the executor checks after each launch (so it sees stray writes
// there).
class GuardedMemory {
 public:
  GuardedMemory(std::size_t bytes, std::size_t alignment, std::string name, std::size_t guard_bytes);
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory();

  unsigned char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  bool slack_is_intact();
  void restore_slack();
  bool holds(const void* address) const;  // within the whole mapping, guards included
  bool open(const void* address);  // makes that guard page accessible (async-signal-safe); false if it is not a guard
  void close();                    // makes both guards inaccessible again
  bool holds_data(const void* address) const;  // within the pages of the data, which a guard is not
  void let_in(bool open);                      // to the data: of a closed one nothing may be read or written
  bool is_closed() const { return closed_; }

 private:
  std::size_t bytes_, guard_bytes_, middle_bytes_;
  std::string name_;
  unsigned char* mapping_ = nullptr;
  unsigned char* data_ = nullptr;
  bool closed_ = false;
};

// All that there is. Changed only while no kernel runs, for signal handlers read it.
std::vector<GuardedMemory*>& guarded_memory();

// For handlers of SIGSEGV: was it a write? And what is none of theirs goes to whoever was there before (the sanitizer,
// a crash reporter), or is died of as usual.
bool was_write(void* machine_context);
void pass_on_fault(const struct sigaction& previous, int signal, siginfo_t* information, void* machine_context);

// An array of n elements of T, initially 0xff bytes (NaN for floats) unless copied from values.
template <class T>
class GuardedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // alignment: give 16 to kernels that need aligned vector loads. guard_bytes: how far a wild index may miss on either
  // side.
  explicit GuardedBuffer(std::size_t count, std::string name = "buffer", std::size_t alignment = alignof(T),
                         std::size_t guard_bytes = 1 << 16)
      : memory_(count * sizeof(T), alignment, std::move(name), guard_bytes), count_(count) {}
  explicit GuardedBuffer(const std::vector<T>& values, std::string name = "buffer", std::size_t alignment = alignof(T))
      : GuardedBuffer(values.size(), std::move(name), alignment) {
    for (std::size_t i = 0; i < count_; ++i) data()[i] = values[i];
  }

  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }
  std::vector<T> values() const { return std::vector<T>(begin(), end()); }

 private:
  GuardedMemory memory_;
  std::size_t count_;
};

// What a run that touched a guard left behind.
struct GuardFault {
  const GuardedMemory* memory;
  std::int64_t offset;  // bytes from the start of the data
  bool write;
  int thread;  // value of GuardWatch::set_thread at the time
};

// While one of these lives, touching a guard is recorded and the run goes on (reads give zeros). Not reentrant; the
// faults of one OS thread at a time.
class GuardWatch {
 public:
  GuardWatch();
  ~GuardWatch();
  GuardWatch(const GuardWatch&) = delete;
  GuardWatch& operator=(const GuardWatch&) = delete;

  static void set_thread(int thread);     // whose faults the next ones are
  std::vector<GuardFault> take_faults();  // since the last call, damaged slack included
};

}  // namespace twinbench::kernels::simt

// An array as large as a card's memory allows, of which only what is touched takes memory: for kernel tests of indices
// beyond 32 bits.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace twinbench::kernels::simt {

// Zeros. Throws std::bad_alloc where the system has no such addresses.
template <class T>
class SparseArray {
 public:
  explicit SparseArray(std::int64_t count)
      : bytes_(static_cast<std::size_t>(count) * sizeof(T)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~SparseArray() { munmap(memory_, bytes_); }
  SparseArray(const SparseArray&) = delete;
  SparseArray& operator=(const SparseArray&) = delete;

  T* data() { return static_cast<T*>(memory_); }
  T& operator[](std::int64_t i) { return data()[i]; }

 private:
  std::size_t bytes_;
  void* memory_;
};

}  // namespace twinbench::kernels::simt

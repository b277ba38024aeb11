// A pool of tensor memory under a budget: blocks by size class that go back to the pool when their tensor dies, and to
// the driver when the pool is trimmed; and the arena that a tape is laid out in (C27).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "src/common/error.h"

namespace twinbench::energy_flow {

struct PoolCounts {
  std::int64_t pool_alloc = 0;               // tensors given
  std::int64_t dev_alloc = 0, dev_free = 0;  // blocks taken from the driver, and given back
  std::int64_t cache_trim = 0;               // times that all free blocks went back to it
  std::int64_t live = 0, peak = 0;           // bytes of tensors given, and the most of them since the peak was reset
  std::int64_t reserved = 0;                 // bytes taken from the driver
  std::int64_t free_blocks = 0, largest_free = 0, total_free = 0;  // what of those is given to nobody, in bytes
};

// Tensors may outlive the pool. Used by one thread. The driver is the tensor allocator.
class MemoryPool {
 public:
  static constexpr double kPressure = 0.9;  // of the capacity

  // capacity: bytes that may be reserved; 0: as many as there are.
  explicit MemoryPool(std::int64_t capacity) : state_(std::make_shared<State>(capacity)) {}

  // Contiguous, not initialised. A refused block costs one trim and one more attempt; then Error(kOutOfMemory) that
  // names what was asked for, with the requested, live, peak and largest free bytes.
  at::Tensor take(at::IntArrayRef shape, at::ScalarType type, const char* what = "tensor") {
    std::int64_t bytes = static_cast<std::int64_t>(c10::elementSize(type));
    for (const std::int64_t extent : shape) bytes *= extent;
    const at::TensorOptions options(type);
    if (bytes == 0) return at::empty(shape, options);
    at::Tensor block = state_->take(bytes, what);
    void* const data = block.mutable_data_ptr();
    return at::from_blob(
        data, shape, [state = state_, block, bytes](void*) { state->give_back(block, bytes); }, options);
  }

  void trim() { state_->trim(); }
  // Trims only under pressure: where most of the capacity is reserved, and some of it is free.
  void relieve() {
    const State& s = *state_;
    if (s.capacity > 0 && static_cast<double>(s.counts.reserved) > kPressure * static_cast<double>(s.capacity) &&
        s.has_free())
      trim();
  }
  void reset_peak() { state_->counts.peak = state_->counts.live; }
  // What is counted from here on, is; what is held stays, and begins the peak.
  void restart_counts() {
    PoolCounts& c = state_->counts;
    c.pool_alloc = c.dev_alloc = c.dev_free = c.cache_trim = 0;
    reset_peak();
  }

  PoolCounts counts() const {
    PoolCounts counts = state_->counts;
    for (const auto& [size, blocks] : state_->free) {
      const auto number = static_cast<std::int64_t>(blocks.size());
      counts.free_blocks += number;
      counts.total_free += number * size;
      if (number > 0) counts.largest_free = std::max(counts.largest_free, size);
    }
    return counts;
  }

 private:
  struct State {
    explicit State(std::int64_t most) : capacity(most) {}
    const std::int64_t capacity;
    PoolCounts counts;
    std::map<std::int64_t, std::vector<at::Tensor>> free;  // by size

    // Four classes an octave: at most a fifth of a block is not asked for.
    static std::int64_t class_of(std::int64_t bytes) {
      const auto octave = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
      const std::int64_t step = std::max<std::int64_t>(1, octave / 4);
      return (bytes + step - 1) / step * step;
    }

    bool has_free() const {
      return std::any_of(free.begin(), free.end(), [](const auto& of) { return !of.second.empty(); });
    }

    at::Tensor take(std::int64_t bytes, const char* what) {
      const std::int64_t size = class_of(bytes);
      std::vector<at::Tensor>& ready = free[size];
      at::Tensor block;
      if (!ready.empty()) {
        block = std::move(ready.back());
        ready.pop_back();
      } else {
        block = reserve(size);
        if (!block.defined() && has_free()) trim(), block = reserve(size);
        if (!block.defined()) refuse(bytes, what);
      }
      ++counts.pool_alloc;
      counts.live += bytes;
      counts.peak = std::max(counts.peak, counts.live);
      return block;
    }

    void give_back(const at::Tensor& block, std::int64_t bytes) {
      counts.live -= bytes;
      free[block.numel()].push_back(block);
    }

    // A block from the driver; none where capacity or driver refuse it.
    at::Tensor reserve(std::int64_t size) {
      if (capacity > 0 && counts.reserved + size > capacity) return {};
      try {
        at::Tensor block = at::empty({size}, at::kByte);
        ++counts.dev_alloc;
        counts.reserved += size;
        return block;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kOutOfMemory) throw;
        return {};
      }
    }

    void trim() {
      ++counts.cache_trim;
      for (auto& [size, blocks] : free) {
        const auto number = static_cast<std::int64_t>(blocks.size());
        counts.dev_free += number;
        counts.reserved -= number * size;
        blocks.clear();
      }
    }

    [[noreturn]] void refuse(std::int64_t bytes, const char* what) const {
      std::int64_t largest = 0;
      for (const auto& [size, blocks] : free)
        if (!blocks.empty()) largest = std::max(largest, size);
      throw Error(ErrorKind::kOutOfMemory, what, std::to_string(bytes) + " bytes requested",
                  std::to_string(counts.live) + " live, " + std::to_string(counts.peak) + " at the peak, " +
                      std::to_string(largest) + " in the largest free block, budget " + std::to_string(capacity) +
                      "; give a larger budget or a smaller micro-batch");
    }
  };

  std::shared_ptr<State> state_;
};

// A tape in one block of a pool: taken from front to back, given up as a whole. Whoever reads a part of a tape that was
// given up is told so.
class TapeArena {
 public:
  struct Part {
    std::int64_t begin = 0, count = 0;  // floats
    std::int64_t generation = -1;
  };

  TapeArena(MemoryPool& pool, std::int64_t floats) : memory_(pool.take({floats}, at::kFloat, "tape")) {}

  Part take(std::int64_t count) {
    if (used_ + count > memory_.numel())
      throw Error(ErrorKind::kOutOfMemory, "tape", std::to_string(4 * count) + " bytes requested",
                  std::to_string(4 * used_) + " of " + std::to_string(4 * memory_.numel()) +
                      " bytes are taken; give a larger budget or a smaller micro-batch");
    const Part part{used_, count, generation_};
    used_ += count;
    peak_ = std::max(peak_, used_);
    return part;
  }
  float* data(const Part& part) const {
    if (part.generation != generation_)
      throw Error(ErrorKind::kInternal, "tape", "a part of generation " + std::to_string(part.generation),
                  "the tape is in generation " + std::to_string(generation_) + "; read it before its backward ends");
    return memory_.mutable_data_ptr<float>() + part.begin;
  }
  void reset() { used_ = 0, ++generation_; }

  std::int64_t live_bytes() const { return 4 * used_; }
  std::int64_t peak_bytes() const { return 4 * peak_; }
  std::int64_t free_bytes() const { return 4 * (memory_.numel() - used_); }

 private:
  at::Tensor memory_;
  std::int64_t used_ = 0, peak_ = 0, generation_ = 0;
};

}  // namespace twinbench::energy_flow

// A hash map of integers to small values in one array, emptied in no time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace twinbench::kernels::simt {

template <class Value>
class FlatMap {
 public:
  // The value of `key`, at first Value{}. Valid until the next call.
  Value& operator[](std::uint64_t key) {
    if (used_ * 2 >= slots_.size()) grow();
    Slot& slot = find(key);
    if (slot.generation != generation_) {
      slot = {key, generation_, Value{}};
      ++used_;
    }
    return slot.value;
  }
  std::size_t size() const { return used_; }
  void clear() {
    used_ = 0;
    if (++generation_ == 0) {
      for (Slot& slot : slots_) slot.generation = 0;
      generation_ = 1;
    }
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_)
      if (slot.generation == generation_) visit(slot.key, slot.value);
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t generation = 0;
    Value value{};
  };

  Slot& find(std::uint64_t key) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 20) & mask;
    while (slots_[at].generation == generation_ && slots_[at].key != key) at = (at + 1) & mask;
    return slots_[at];
  }
  void grow() {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 1024 : slots_.size() * 2));
    for (Slot& slot : old)
      if (slot.generation == generation_) find(slot.key) = std::move(slot);
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
  std::uint32_t generation_ = 1;
};

}  // namespace twinbench::kernels::simt

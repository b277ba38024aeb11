// Contents that never repeat: before each timed run one element of the inputs changes between two data sets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/named_tensors.h"

namespace twinbench {

// A Gray code over up to 40 elements of the data inputs, of which each has two values: 2^40 runs without the same
// contents twice, for the price of one store. A variant that remembers answers by contents has nothing to remember.
class ContentWalk {
 public:
  // `live`: the tensors that are walked, on the CPU and holding `own`; `names`: those of them that may change; `other`:
  // what they may change to. Only floating ones do.
  ContentWalk(const NamedTensors& live, const NamedTensors& own, const NamedTensors& other,
              const std::vector<std::string>& names);

  bool can_change() const { return !places_.empty(); }
  void step() {
    if (places_.empty()) return;
    ++steps_;
    flip(static_cast<std::size_t>(__builtin_ctzll(steps_)) % places_.size());
  }
  // The tensors hold `own` again, and the walk goes on from where it was: call after they were written.
  void go_on();
  // One element apart from `other`, which the tensors hold; the second call puts it back.
  void set_apart(bool apart);

 private:
  struct Place {
    void* at;
    std::size_t bytes;
    std::uint64_t own, other;  // as bits
  };
  void put(const Place& place, std::uint64_t value);
  void flip(std::size_t index) {
    flipped_[index] = !flipped_[index];
    put(places_[index], flipped_[index] ? places_[index].other : places_[index].own);
  }

  std::vector<Place> places_;
  std::vector<bool> flipped_;
  std::uint64_t steps_ = 0;
};

}  // namespace twinbench

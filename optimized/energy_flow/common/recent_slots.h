// Numbered slots of which the one that was used least recently makes room: found by a digest of 128 bits, in chains.
// Nothing is allocated after the constructor. Torch-free.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace twinbench::energy_flow {

struct Digest {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Digest&) const = default;
};
inline Digest digest_of(const void* bytes, std::size_t count) {
  const XXH128_hash_t hash = XXH3_128bits(bytes, count);
  return {hash.low64, hash.high64};
}

class RecentSlots {
 public:
  static constexpr std::int32_t kNone = -1;

  // `limit` slots, at least one and below 2^31.
  explicit RecentSlots(std::int64_t limit)
      : digest_(static_cast<std::size_t>(limit)),
        next_(digest_.size()),
        older_(digest_.size()),
        newer_(digest_.size()) {
    std::size_t chains = 1;
    while (chains < 2 * digest_.size()) chains *= 2;
    chain_.resize(chains);
    clear();
  }

  void clear() {
    chain_.assign(chain_.size(), kNone);
    oldest_ = newest_ = kNone, used_ = 0;
  }

  // The slot of that digest which same(slot) says is it; kNone where there is none. The order stays.
  template <class Same>
  std::int32_t find(const Digest& digest, const Same& same) const {
    for (std::int32_t slot = chain_[place(digest)]; slot != kNone; slot = next_[at(slot)])
      if (digest_[at(slot)] == digest && same(slot)) return slot;
    return kNone;
  }

  void use(std::int32_t slot) {
    if (slot == newest_) return;
    unlink(slot);
    append(slot);
  }

  // A slot for what is not there yet, the most recent one then: a free one, else that of the least recent, which goes.
  struct Taken {
    std::int32_t slot = kNone;
    bool evicted = false;
  };
  Taken take(const Digest& digest) {
    Taken taken{used_, false};
    if (static_cast<std::size_t>(used_) < digest_.size()) {
      ++used_;
    } else {
      taken = {oldest_, true};
      unlink(taken.slot);
      std::int32_t* link = &chain_[place(digest_[at(taken.slot)])];
      while (*link != taken.slot) link = &next_[at(*link)];
      *link = next_[at(taken.slot)];
    }
    digest_[at(taken.slot)] = digest;
    std::int32_t& first = chain_[place(digest)];
    next_[at(taken.slot)] = first;
    first = taken.slot;
    append(taken.slot);
    return taken;
  }

  std::int32_t size() const { return used_; }
  // body(slot), the least recent first.
  template <class Body>
  void each(const Body& body) const {
    for (std::int32_t slot = oldest_; slot != kNone; slot = newer_[at(slot)]) body(slot);
  }

 private:
  static std::size_t at(std::int32_t slot) { return static_cast<std::size_t>(slot); }
  std::size_t place(const Digest& digest) const { return digest.low & (chain_.size() - 1); }

  void unlink(std::int32_t slot) {
    const std::int32_t older = older_[at(slot)], newer = newer_[at(slot)];
    (older == kNone ? oldest_ : newer_[at(older)]) = newer;
    (newer == kNone ? newest_ : older_[at(newer)]) = older;
  }
  void append(std::int32_t slot) {
    older_[at(slot)] = newest_, newer_[at(slot)] = kNone;
    (newest_ == kNone ? oldest_ : newer_[at(newest_)]) = slot;
    newest_ = slot;
  }

  std::vector<Digest> digest_;
  std::vector<std::int32_t> next_, older_, newer_, chain_;  // by slot: of the chain; in the order. By place: the first
  std::int32_t oldest_ = kNone, newest_ = kNone, used_ = 0;
};

}  // namespace twinbench::energy_flow

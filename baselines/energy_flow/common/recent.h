// What was used last, at most so many of it: a list of entries and a map to their places.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <utility>

namespace twinbench::energy_flow {

template <class Key, class Value>
class Recent {
 public:
  using Entries = std::list<std::pair<Key, Value>>;  // the most recent last

  explicit Recent(std::int64_t limit) : limit_(static_cast<std::size_t>(limit)) {}

  // Null where there is none. It stays where it is in the order.
  Value* look(const Key& key) {
    const auto at = places_.find(key);
    return at == places_.end() ? nullptr : &at->second->second;
  }
  // The same, and it becomes the most recent one.
  Value* use(const Key& key) {
    const auto at = places_.find(key);
    if (at == places_.end()) return nullptr;
    entries_.splice(entries_.end(), entries_, at->second);
    return &at->second->second;
  }
  // In place of an entry of that key; else the least recent one makes room.
  void put(const Key& key, Value value) {
    if (Value* const old = use(key)) {
      *old = std::move(value);
      return;
    }
    if (entries_.size() == limit_) {
      places_.erase(entries_.front().first);
      entries_.pop_front();
      ++evictions;
    }
    entries_.emplace_back(key, std::move(value));
    places_.emplace(key, std::prev(entries_.end()));
  }
  void clear() { entries_.clear(), places_.clear(); }
  void restart_counts() { hits = misses = evictions = 0; }
  const Entries& entries() const { return entries_; }

  std::int64_t hits = 0, misses = 0, evictions = 0;

 private:
  std::size_t limit_;
  Entries entries_;
  std::map<Key, typename Entries::iterator> places_;
};

}  // namespace twinbench::energy_flow

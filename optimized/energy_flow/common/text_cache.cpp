// Lookups in order, rows that are missing in parallel, then what waits for them.
#include "optimized/energy_flow/common/text_cache.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "src/common/error.h"

namespace twinbench::energy_flow {
namespace {

constexpr std::int32_t kNothing = RecentSlots::kNone;

// How many entries of so many bytes have room at first.
std::int64_t first_room(std::int64_t limit, std::int64_t bytes) {
  constexpr std::int64_t kAtOnce = std::int64_t{64} << 20;
  return std::clamp<std::int64_t>(kAtOnce / std::max<std::int64_t>(bytes, 1), 1, limit);
}

}  // namespace

TextCache::TextCache(Shape shape, const Vocabulary& vocabulary, bool pinned)
    : shape_(shape),
      vocabulary_(vocabulary),
      slots_(shape.limit),
      room_(first_room(shape.limit, shape.longest + 4 * (shape.tokens + shape.cells))),
      letters_(at(room_ * shape.longest)),
      length_(at(shape.limit)),
      ids_(at(room_ * shape.tokens)),
      miss_of_(at(shape.limit), kNothing),
      version_(at(shape.limit), -1),
      tag_(at(shape.limit)),
      slab_(at::empty({room_, shape.cells}, at::TensorOptions(at::kFloat).pinned_memory(pinned))) {}

void TextCache::make_room() {
  const std::int64_t more = std::min(2 * room_, shape_.limit);
  letters_.resize(at(more * shape_.longest));
  ids_.resize(at(more * shape_.tokens));
  const at::Tensor slab = at::empty({more, shape_.cells}, slab_.options().pinned_memory(slab_.is_pinned()));
  slab.narrow(0, 0, room_).copy_(slab_);
  slab_ = slab;
  room_ = more;
}

std::pair<std::int32_t, bool> TextCache::slot_of(const Text& text) {
  const Digest digest = digest_of(text.bytes.data(), text.bytes.size());
  const std::int32_t known = slots_.find(digest, [&](std::int32_t slot) { return text_of(slot) == text.bytes; });
  if (known != kNothing) {
    slots_.use(known);
    return {known, true};
  }
  if (slots_.size() == room_ && room_ < shape_.limit) make_room();
  const RecentSlots::Taken taken = slots_.take(digest);
  if (taken.evicted) {
    ++ids_count_.evictions, ++rows_count_.evictions;
    if (miss_of_[at(taken.slot)] != kNothing) slot_of_text_[at(miss_of_[at(taken.slot)])] = kNothing;
  }
  std::copy(text.bytes.begin(), text.bytes.end(), letters_.begin() + taken.slot * shape_.longest);
  length_[at(taken.slot)] = static_cast<std::int32_t>(text.bytes.size());
  tag_[at(taken.slot)] = text.tag, version_[at(taken.slot)] = -1, miss_of_[at(taken.slot)] = kNothing;
  return {taken.slot, false};
}

void TextCache::serve(std::span<const Text> texts, std::int64_t version, const Encode& encode, std::int32_t* ids,
                      float* rows) {
  const std::lock_guard lock(mutex_);
  for (const Text& text : texts)
    if (static_cast<std::int64_t>(text.bytes.size()) > shape_.longest)
      throw Error(ErrorKind::kOutOfRange, "text", std::to_string(text.bytes.size()) + " bytes",
                  "texts of at most " + std::to_string(shape_.longest) + " bytes, or make the cache for longer ones");
  slot_of_text_.assign(texts.size(), kNothing), same_as_.assign(texts.size(), kNothing);
  std::int64_t misses = 0;
  try {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto [slot, known] = slot_of(texts[i]);
      std::int32_t* const kept = ids_.data() + slot * shape_.tokens;
      ++(known ? ids_count_.hits : ids_count_.misses);
      if (!known) {
        std::fill_n(kept, shape_.tokens, kPadToken);
        write_tokens(texts[i].bytes, vocabulary_, shape_.tokens, kept);
      }
      std::copy_n(kept, shape_.tokens, ids + static_cast<std::int64_t>(i) * shape_.tokens);
      const bool hit = version_[at(slot)] == version;
      ++(hit ? rows_count_.hits : rows_count_.misses);
      if (!hit) {
        if (miss_of_[at(slot)] != kNothing) slot_of_text_[at(miss_of_[at(slot)])] = kNothing;
        version_[at(slot)] = version, miss_of_[at(slot)] = static_cast<std::int32_t>(i), slot_of_text_[i] = slot;
        same_as_[i] = static_cast<std::int32_t>(i);
        ++misses;
      } else if (miss_of_[at(slot)] != kNothing) {
        same_as_[i] = miss_of_[at(slot)];
      } else {
        std::copy_n(row_of(slot), shape_.cells, rows + static_cast<std::int64_t>(i) * shape_.cells);
      }
    }
    if (misses == 0) return;
    at::parallel_for(0, static_cast<std::int64_t>(texts.size()), 8, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        if (same_as_[at(i)] == i) encode(ids + i * shape_.tokens, version, rows + i * shape_.cells);
    });
  } catch (...) {  // none of this batch's rows is kept
    for (const std::int32_t slot : slot_of_text_)
      if (slot != kNothing) version_[at(slot)] = -1, miss_of_[at(slot)] = kNothing;
    throw;
  }
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(texts.size()); ++i) {
    if (same_as_[at(i)] == kNothing) continue;
    float* const row = rows + i * shape_.cells;
    if (same_as_[at(i)] != i) std::copy_n(rows + same_as_[at(i)] * shape_.cells, shape_.cells, row);
    if (slot_of_text_[at(i)] == kNothing) continue;
    std::copy_n(row, shape_.cells, row_of(slot_of_text_[at(i)]));
    miss_of_[at(slot_of_text_[at(i)])] = kNothing;
  }
}

void TextCache::clear() {
  const std::lock_guard lock(mutex_);
  slots_.clear();
  std::fill(miss_of_.begin(), miss_of_.end(), kNothing);
}

void TextCache::restart_counts() {
  const std::lock_guard lock(mutex_);
  ids_count_ = rows_count_ = {};
}

CacheCounts TextCache::id_counts() const {
  const std::lock_guard lock(mutex_);
  return ids_count_;
}

CacheCounts TextCache::row_counts() const {
  const std::lock_guard lock(mutex_);
  return rows_count_;
}

void TextCache::each(const std::function<void(std::int64_t, std::int64_t)>& body) const {
  const std::lock_guard lock(mutex_);
  slots_.each([&](std::int32_t slot) { body(tag_[at(slot)], version_[at(slot)]); });
}

SurfaceTexts::SurfaceTexts(std::int64_t limit, std::int64_t cells, std::int64_t longest)
    : cells_(cells),
      longest_(longest),
      limit_(limit),
      slots_(limit),
      room_(first_room(limit, longest + 4 * cells)),
      surface_(static_cast<std::size_t>(room_ * cells)),
      letters_(static_cast<std::size_t>(room_ * longest)),
      length_(static_cast<std::size_t>(limit)),
      tag_(static_cast<std::size_t>(limit)) {}

std::string_view SurfaceTexts::find(const float* surface, std::int64_t tag, const Say& say) {
  const std::size_t bytes = static_cast<std::size_t>(cells_) * sizeof(float);
  const auto kept = [&](std::int32_t slot) { return surface_.data() + slot * cells_; };
  const Digest digest = digest_of(surface, bytes);
  std::int32_t slot =
      slots_.find(digest, [&](std::int32_t candidate) { return std::memcmp(kept(candidate), surface, bytes) == 0; });
  if (slot != kNothing) {
    ++counts_.hits;
    slots_.use(slot);
  } else {
    ++counts_.misses;
    if (slots_.size() == room_ && room_ < limit_) {
      room_ = std::min(2 * room_, limit_);
      surface_.resize(static_cast<std::size_t>(room_ * cells_));
      letters_.resize(static_cast<std::size_t>(room_ * longest_));
    }
    const RecentSlots::Taken taken = slots_.take(digest);
    slot = taken.slot;
    counts_.evictions += taken.evicted;
    std::copy_n(surface, cells_, kept(slot));
    tag_[static_cast<std::size_t>(slot)] = tag;
    length_[static_cast<std::size_t>(slot)] = say(letters_.data() + slot * longest_);
  }
  return {letters_.data() + slot * longest_, static_cast<std::size_t>(length_[static_cast<std::size_t>(slot)])};
}

}  // namespace twinbench::energy_flow

// The text cache (C22): token ids and rows of the texts that were used last, in one slab on the host, and the texts of
// surfaces. Many threads may ask; each batch is served whole. Nothing is allocated after the first batch of a size, but
// for entries beyond those of the first 64 MiB: their room doubles when it is full.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "optimized/energy_flow/common/recent_slots.h"
#include "src/energy_flow/common/tokenizer.h"

namespace twinbench::energy_flow {

struct CacheCounts {
  std::int64_t hits = 0, misses = 0, evictions = 0;
};

// Texts to their ids, and to their rows while the version of the parameters is the same.
class TextCache {
 public:
  struct Shape {
    std::int64_t limit = 1, longest = 0, tokens = 0, cells = 0;  // entries, bytes of a text, ids and floats of an entry
  };
  struct Text {
    std::string_view bytes;
    std::int64_t tag = 0;  // what the caller calls it
  };
  // The row of a text's ids.
  using Encode = std::function<void(const std::int32_t* ids, std::int64_t version, float* row)>;

  // `pinned`: the slab is memory that a card copies from without a detour.
  TextCache(Shape shape, const Vocabulary& vocabulary, bool pinned = false);

  // ids [texts, tokens], padded with zeros; rows [texts, cells]. encode is called for rows that are missing, by several
  // threads at once. Throws kOutOfRange for a text that is longer than `longest`, before anything has changed.
  void serve(std::span<const Text> texts, std::int64_t version, const Encode& encode, std::int32_t* ids, float* rows);

  void clear();
  void restart_counts();
  CacheCounts id_counts() const;
  CacheCounts row_counts() const;
  // body(tag, version), the least recent first; the version is -1 where there is no row.
  void each(const std::function<void(std::int64_t, std::int64_t)>& body) const;

  // A file of all entries in their order (src/formats/checkpoint_file.h), and back. What cannot be read, or is of other
  // sizes, leaves the cache as it is: then the reason is returned, which is a warning and no error. The caller says by
  // `parameters` which weights the rows are of: rows of other ones are left out, their ids are not.
  void save(const std::string& path, const std::string& parameters) const;
  std::string restore(const std::string& path, const std::string& parameters);

 private:
  static std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }
  std::string_view text_of(std::int32_t slot) const {
    return {letters_.data() + slot * shape_.longest, at(length_[at(slot)])};
  }
  // The slot of a text, and whether it was there.
  std::pair<std::int32_t, bool> slot_of(const Text& text);
  void make_room();
  float* row_of(std::int32_t slot) const { return slab_.mutable_data_ptr<float>() + slot * shape_.cells; }

  mutable std::mutex mutex_;
  const Shape shape_;
  const Vocabulary& vocabulary_;
  RecentSlots slots_;
  std::int64_t room_;  // entries that letters_, ids_ and slab_ hold
  CacheCounts ids_count_, rows_count_;
  std::vector<char> letters_;
  std::vector<std::int32_t> length_, ids_, miss_of_;  // of a slot; miss_of_: the text of this batch that fills its row
  std::vector<std::int64_t> version_, tag_;
  at::Tensor slab_;                                   // [room, cells]
  std::vector<std::int32_t> slot_of_text_, same_as_;  // of a batch: what fills its slot; which text has its row
};

// Surfaces, by their bytes, to the texts that were made of them.
class SurfaceTexts {
 public:
  SurfaceTexts(std::int64_t limit, std::int64_t cells, std::int64_t longest);

  // The text of a surface, written to `text` by say(text), which returns its bytes, where it is not known.
  using Say = std::function<std::int64_t(char* text)>;
  std::string_view find(const float* surface, std::int64_t tag, const Say& say);

  void clear() { slots_.clear(); }
  void restart_counts() { counts_ = {}; }
  const CacheCounts& counts() const { return counts_; }
  template <class Body>
  void each(const Body& body) const {
    slots_.each([&](std::int32_t slot) { body(tag_[static_cast<std::size_t>(slot)]); });
  }

 private:
  const std::int64_t cells_, longest_, limit_;
  RecentSlots slots_;
  std::int64_t room_;  // entries that surface_ and letters_ hold
  CacheCounts counts_;
  std::vector<float> surface_;
  std::vector<char> letters_;
  std::vector<std::int64_t> length_, tag_;
};

}  // namespace twinbench::energy_flow

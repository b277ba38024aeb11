// What the text cache (C22) keeps answers of, small enough to be computed anew by anyone who asks. The row of a text,
// an encoder's stand-in: the tangent of its tokens' mean embedding, scaled by the parameters' version. The text of a
// surface, a decoder's stand-in: a word for each of its equal parts, that of the part's largest element.
#pragma once

#include <string>
#include <vector>

#include "src/energy_flow/common/text_list.h"
#include "src/energy_flow/common/tokenizer.h"
#include "src/energy_flow/common/word_table.h"
#include "src/setting.h"

namespace twinbench::energy_flow {

inline Vocabulary cached_vocabulary(const NamedTensors& inputs, const Setting& setting) {
  const WordTable table(inputs, setting.size("longest_word"));
  std::vector<std::string> words;
  for (std::int64_t id = kFirstWord; id < setting.size("vocabulary"); ++id) words.emplace_back(table.word(id));
  return Vocabulary(std::move(words));
}

// Throws kOutOfRange, naming the input, where an index leaves its list; -1 is allowed where nothing may stand.
inline void check_indices(const NamedTensors& inputs, const std::string& name, std::int64_t end, std::int64_t least) {
  const at::Tensor indices = inputs[name].contiguous();
  for (std::int64_t i = 0; i < indices.numel(); ++i)
    if (const std::int64_t one = indices.const_data_ptr<std::int64_t>()[i]; one < least || one >= end)
      throw Error(ErrorKind::kOutOfRange, name, std::to_string(one),
                  "from " + std::to_string(least) + " to " + std::to_string(end - 1));
}

// Throws kOutOfRange where something is kept twice, or behind a place that is empty.
inline void check_kept(const NamedTensors& inputs, const std::string& name, std::int64_t end) {
  check_indices(inputs, name, end, -1);
  const at::Tensor kept = inputs[name].contiguous();
  std::vector<bool> seen(static_cast<std::size_t>(end));
  bool ended = false;
  for (std::int64_t i = 0; i < kept.numel(); ++i) {
    const std::int64_t one = kept.const_data_ptr<std::int64_t>()[i];
    ended = ended || one < 0;
    if (one < 0) continue;
    if (ended || seen[static_cast<std::size_t>(one)])
      throw Error(ErrorKind::kOutOfRange, name, std::to_string(one), "keep each once, the empty places last");
    seen[static_cast<std::size_t>(one)] = true;
  }
}

inline void check_cache_inputs(const NamedTensors& inputs, const Setting& setting) {
  check_indices(inputs, "request", setting.size("pool"), 0);
  check_indices(inputs, "version", setting.size("versions"), 0);
  check_indices(inputs, "asked", setting.size("surfaces"), 0);
  check_kept(inputs, "kept", setting.size("pool"));
  check_indices(inputs, "kept_version", setting.size("versions"), -1);
  for (std::int64_t i = 0; i < setting.size("limit"); ++i)
    if (inputs["kept"][i].item<std::int64_t>() >= 0 && inputs["kept_version"][i].item<std::int64_t>() < 0)
      throw Error(ErrorKind::kOutOfRange, "kept_version", "-1", "give each text that is kept its version");
  check_kept(inputs, "kept_surface", setting.size("surfaces"));
}

// Columns of `counts`, rows being the levels: token ids, rows, texts of surfaces.
enum CacheCount : std::int64_t { kCacheHits, kCacheMisses, kCacheEvictions, kCacheCounts };
inline constexpr std::int64_t kCacheLevels = 3;

}  // namespace twinbench::energy_flow

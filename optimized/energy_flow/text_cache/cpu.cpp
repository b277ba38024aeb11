// Optimized energy_flow.text_cache: one slab of rows on the host, from which a batch is gathered into one tensor; only
// what is missing is encoded, in parallel. Digests are of the texts' own bytes.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstring>
#include <span>

#include "kernels/common/math.h"
#include "optimized/common/tensors.h"
#include "optimized/energy_flow/common/text_cache.h"
#include "src/common/cpu_clones.h"
#include "src/common/forward_call.h"
#include "src/energy_flow/common/cached_text.h"
#include "src/energy_flow/common/sentence_pairs.h"

namespace twinbench::energy_flow::text_cache {
namespace {

std::int64_t longest_text(const TextList& pool) {
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < pool.size(); ++i) longest = std::max(longest, static_cast<std::int64_t>(pool[i].size()));
  return longest;
}

TWINBENCH_CPU_CLONES void add_row(const float* __restrict from, float* __restrict to, std::int64_t cells) {
  for (std::int64_t c = 0; c < cells; ++c) to[c] += from[c];
}
// Sums of so many tokens to the row.
TWINBENCH_CPU_CLONES void bend(float* row, float tokens, float gain, std::int64_t cells) {
  for (std::int64_t c = 0; c < cells; ++c) row[c] = kernels::tanh(row[c] / tokens * gain);
}

class Optimized final : public Runnable {
 public:
  Optimized(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        setting_(setting),
        enabled_(setting.on("text_cache_enabled")),
        requests_(setting.size("requests")),
        batch_(setting.size("batch")),
        asking_(setting.size("asking")),
        cells_(setting.size("cells")),
        tokens_(setting.size("tokens")),
        limit_(setting.size("limit")),
        room_(setting.size("spoken") * (setting.size("longest_word") + 1)),
        vocabulary_(cached_vocabulary(inputs, setting)),
        pool_(inputs, "pool"),
        request_(given<std::int64_t>(inputs_, "request")),
        asked_(given<std::int64_t>(inputs_, "asked")),
        version_(given<std::int64_t>(inputs_, "version")),
        kept_(given<std::int64_t>(inputs_, "kept")),
        kept_version_(given<std::int64_t>(inputs_, "kept_version")),
        kept_surface_(given<std::int64_t>(inputs_, "kept_surface")),
        surface_(given<float>(inputs_, "surface")),
        embedding_(given<float>(inputs_, "embedding")),
        gain_(given<float>(inputs_, "version_gain")),
        cache_({limit_, longest_text(pool_), tokens_, cells_}, vocabulary_),
        surfaces_(limit_, cells_, room_),
        encode_([this](const std::int32_t* ids, std::int64_t version, float* row) { encode(ids, version, row); }),
        texts_(static_cast<std::size_t>(batch_)),
        letters_(static_cast<std::size_t>(requests_ * asking_ * room_)),
        said_(static_cast<std::size_t>(requests_ * asking_)) {
    token_ = at::zeros({requests_, batch_, tokens_}, at::kInt),
    row_ = at::zeros({requests_, batch_, cells_}, at::kFloat);
    reset();
  }

  void reset() override {
    cache_.clear(), surfaces_.clear();
    if (!enabled_) return;
    std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens_));
    std::vector<float> row(static_cast<std::size_t>(cells_));
    for (std::int64_t i = 0; i < limit_; ++i) {
      const TextCache::Text text{kept_[i] < 0 ? std::string_view() : pool_[kept_[i]], kept_[i]};
      if (kept_[i] >= 0) cache_.serve(std::span(&text, 1), kept_version_[i], encode_, ids.data(), row.data());
      if (kept_surface_[i] >= 0) text_of(kept_surface_[i]);
    }
  }

  void run() override {
    cache_.restart_counts(), surfaces_.restart_counts();
    for (std::int64_t r = 0; r < requests_; ++r) {
      serve(r);
      for (std::int64_t i = r * asking_; i < (r + 1) * asking_; ++i) {
        char* const text = letters_.data() + i * room_;
        const std::string_view known = enabled_ ? text_of(asked_[i]) : std::string_view(text, say(asked_[i], text));
        if (enabled_) std::memcpy(text, known.data(), known.size());
        said_[static_cast<std::size_t>(i)] = {text, known.size()};
      }
    }
  }

  NamedTensors outputs() override {
    NamedTensors outputs{{"token", token_}, {"row", row_}};
    const at::Tensor counts = at::zeros({kCacheLevels, kCacheCounts}, at::kLong);
    auto* count = counts.mutable_data_ptr<std::int64_t>();
    CacheCounts levels[] = {cache_.id_counts(), cache_.row_counts(), surfaces_.counts()};
    if (!enabled_) levels[0].misses = levels[1].misses = requests_ * batch_, levels[2].misses = requests_ * asking_;
    for (const CacheCounts& one : levels) *count++ = one.hits, *count++ = one.misses, *count++ = one.evictions;
    outputs.set("counts", counts);
    for (const char* name : {"kept", "kept_version", "kept_surface"})
      outputs.set(name, enabled_ ? at::full({limit_}, -1, at::kLong) : inputs_[name].clone());
    if (enabled_) {
      auto *kept = data<std::int64_t>(outputs["kept"]), *version = data<std::int64_t>(outputs["kept_version"]),
           *surface = data<std::int64_t>(outputs["kept_surface"]);
      cache_.each([&](std::int64_t tag, std::int64_t of_version) { *kept++ = tag, *version++ = of_version; });
      surfaces_.each([&](std::int64_t tag) { *surface++ = tag; });
    }
    set_texts(outputs, said_);
    for (const char* name : {"device_bytes", "unlimited"}) outputs.set(name, at::zeros({1}, at::kLong));
    return outputs;
  }

 private:
  void serve(std::int64_t r) {
    auto* const ids = data<std::int32_t>(token_) + r * batch_ * tokens_;
    auto* const rows = data<float>(row_) + r * batch_ * cells_;
    for (std::int64_t i = 0; i < batch_; ++i) {
      const std::int64_t number = request_[r * batch_ + i];
      texts_[static_cast<std::size_t>(i)] = {pool_[number], number};
    }
    if (enabled_) return cache_.serve(texts_, version_[r], encode_, ids, rows);
    at::parallel_for(0, batch_, 8, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::fill_n(ids + i * tokens_, tokens_, kPadToken);
        write_tokens(texts_[static_cast<std::size_t>(i)].bytes, vocabulary_, tokens_, ids + i * tokens_);
        encode(ids + i * tokens_, version_[r], rows + i * cells_);
      }
    });
  }

  void encode(const std::int32_t* ids, std::int64_t version, float* row) const {
    announce_forward_call("energy_flow.encoded_text");
    std::int64_t there = 0;
    for (std::fill_n(row, cells_, 0.0f); there < tokens_ && ids[there] != kPadToken; ++there)
      add_row(embedding_ + ids[there] * cells_, row, cells_);
    bend(row, static_cast<float>(there), gain_[version], cells_);
  }

  std::string_view text_of(std::int64_t surface) {
    return surfaces_.find(surface_ + surface * cells_, surface,
                          [&](char* text) { return static_cast<std::int64_t>(say(surface, text)); });
  }

  // A word for each part, that of its first largest element; bytes written.
  std::size_t say(std::int64_t surface, char* text) const {
    const std::int64_t part = setting_.size("part"), words = vocabulary_.size() - kFirstWord;
    char* end = text;
    for (const float* from = surface_ + surface * cells_; from < surface_ + (surface + 1) * cells_; from += part) {
      const std::int64_t largest = largest_of(from, part);
      const std::string& word = vocabulary_.word(kFirstWord + static_cast<std::int32_t>(largest % words));
      if (end != text) *end++ = ' ';
      end = std::copy(word.begin(), word.end(), end);
    }
    return static_cast<std::size_t>(end - text);
  }

  // As ATen has it: no number is larger than NaN.
  static std::int64_t largest_of(const float* of, std::int64_t count) {
    std::int64_t largest = 0;
    for (std::int64_t i = 1; i < count && of[largest] == of[largest]; ++i)
      if (!(of[i] <= of[largest])) largest = i;
    return largest;
  }

  NamedTensors inputs_;
  const Setting setting_;
  const bool enabled_;
  const std::int64_t requests_, batch_, asking_, cells_, tokens_, limit_, room_;  // room_: bytes of a surface's text
  const Vocabulary vocabulary_;
  const TextList pool_;
  const std::int64_t *request_, *asked_, *version_, *kept_, *kept_version_, *kept_surface_;
  const float *surface_, *embedding_, *gain_;
  TextCache cache_;
  SurfaceTexts surfaces_;
  const TextCache::Encode encode_;
  std::vector<TextCache::Text> texts_;  // of a batch
  std::vector<char> letters_;
  std::vector<std::string_view> said_;
  at::Tensor token_, row_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Optimized>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_cache

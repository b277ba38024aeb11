// energy_flow.text_cache (C22): token ids and rows of texts, and texts of surfaces, kept from one batch to the next.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "src/common/philox.h"
#include "src/energy_flow/common/cached_text.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::text_cache {
namespace {

Signature signature() {
  const Tolerance row{Tolerance::Kind::kBound, {1e-5, 1e-6}, {1e-5, 1e-6}, "op"},
      measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  const auto whole = [](InputSpec input) { return input.batch(std::nullopt).without_gradient(); };
  const auto kept = [&](const char* name) { return whole(state(name, "limit", not_drawn()).of(Element::kInt64)); };
  const auto exact = [](const char* name, const char* shape, Element element) {
    return exact_output(name, shape, element).batch(std::nullopt);
  };
  Signature s{
      .derived = {{"cells", Expression("spoken * part")}},
      .inputs = {whole(data("pool_bytes", "any", not_drawn()).of(Element::kByte)),
                 whole(keys("pool_offsets", "pool + 1")), whole(keys("request", "requests, batch")),
                 whole(keys("version", "requests")), whole(keys("asked", "requests, asking")),
                 whole(data("surface", "surfaces, cells", from_case(1))),
                 bias("embedding", "vocabulary, cells", normal(2, 1)).without_gradient(),
                 gain("version_gain", "versions", uniform(3, 0.5, 1.5)).without_gradient(),
                 // The least recent first, and no entry behind the last one: -1.
                 kept("kept"), kept("kept_version"), kept("kept_surface")},
      .outputs = {exact("token", "requests, batch, tokens", Element::kInt32),
                  output("row", "requests, batch, cells", row).batch(std::nullopt),
                  exact("text_bytes", "any", Element::kByte), exact("text_offsets", "any", Element::kInt64),
                  exact("counts", "3, 3", Element::kInt64), exact("kept", "limit", Element::kInt64),
                  exact("kept_version", "limit", Element::kInt64), exact("kept_surface", "limit", Element::kInt64),
                  // Of a variant's own: rows that lie beside the parameters, and entries that no limit holds.
                  output("device_bytes", "1", measured).of(Element::kInt64).batch(std::nullopt),
                  output("unlimited", "1", measured).of(Element::kInt64).batch(std::nullopt)},
  };
  for (InputSpec& words : word_inputs()) s.inputs.push_back(words);
  return s;
}

// Words of the vocabulary by the text's number alone, that number as a word that it does not have, so that no two are
// the same; at 0 nothing but white space. Where they are alike, all begin with one long word.
std::string pooled_text(std::int64_t number, const WordTable& words, std::int64_t vocabulary, bool alike) {
  std::string text;
  if (number == 0) return " \t";
  if (alike) text = std::string(40, 'x') + " ";
  for (std::int64_t k = 0; k < 1 + number % 5; ++k) {
    text += k == 0 ? "" : " ";
    text += words.word(kFirstWord + (7 * number + 3 * k) % (vocabulary - kFirstWord));
  }
  return text + (number % 3 == 0 ? "! " : " ") + std::to_string(number);
}

void finish_inputs(NamedTensors& inputs, const Setting& s, std::uint64_t seed) {
  draw_words(inputs, s.size("vocabulary"), s.size("longest_word"), seed);
  const WordTable words(inputs, s.size("longest_word"));
  std::string bytes;
  const std::string blanks(static_cast<std::size_t>(s.option("blanks")), ' ');
  const auto integers = [&](const char* name) { return inputs[name].mutable_data_ptr<std::int64_t>(); };
  integers("pool_offsets")[0] = 0;
  for (std::int64_t i = 0; i < s.size("pool"); ++i) {
    bytes += pooled_text(i, words, s.size("vocabulary"), s.on("alike")) + blanks;
    integers("pool_offsets")[i + 1] = static_cast<std::int64_t>(bytes.size());
  }
  at::Tensor pool = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::memcpy(pool.mutable_data_ptr<std::uint8_t>(), bytes.data(), bytes.size());
  inputs.set("pool_bytes", pool);

  // Few texts are asked for often: by the square of a number that is drawn evenly.
  const auto drawn = [&](std::uint32_t tensor, std::int64_t place, std::int64_t below) {
    const PhiloxWords random = philox(seed, static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32),
                                      0, philox_tag(PhiloxStream::kShuffle, tensor));
    const double even = static_cast<double>(random.w[0]) * 0x1p-32;
    return static_cast<std::int64_t>(even * (s.on("evenly") ? 1 : even) * static_cast<double>(below));
  };
  for (std::int64_t i = 0; i < inputs["request"].numel(); ++i)
    integers("request")[i] = s.on("in_turn") ? i % s.size("pool") : drawn(1, i, s.size("pool"));
  for (std::int64_t i = 0; i < inputs["asked"].numel(); ++i) integers("asked")[i] = drawn(2, i, s.size("surfaces"));
  const auto every = static_cast<std::int64_t>(s.option("version_every"));
  for (std::int64_t i = 0; i < s.size("requests"); ++i)
    integers("version")[i] = every > 0 ? i / every % s.size("versions") : 0;
  // Each surface of odd number has its neighbour's elements in another order: one sum, another text. Where it has no
  // other order, two numbers are one surface.
  for (std::int64_t i = 1; i < s.size("surfaces"); i += 2)
    inputs["surface"][i].copy_(inputs["surface"][i - 1].roll({s.size("part") / 2 + 1}));
  const at::Tensor before_last = inputs["surface"].narrow(1, 0, (s.size("spoken") - 1) * s.size("part"));
  if (s.on("alike")) before_last.copy_(before_last[0].clone());
  const auto filled = static_cast<std::int64_t>(s.option("kept_before"));
  for (std::int64_t i = 0; i < s.size("limit"); ++i) {
    integers("kept")[i] = i < std::min(filled, s.size("pool")) ? i : -1;
    integers("kept_version")[i] = i < std::min(filled, s.size("pool")) ? i % s.size("versions") : -1;
    integers("kept_surface")[i] = i < std::min(filled, s.size("surfaces")) ? s.size("surfaces") - 1 - i : -1;
  }
}

std::int64_t count_in(const NamedTensors& outputs, std::int64_t level, CacheCount count) {
  return outputs["counts"].cpu()[level][count].item<std::int64_t>();
}

// A sum of every surface that is asked for, and of every row that is made, whose text is found by it.
std::int64_t reads(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (variant == Variant::kOptimized) return 0;
  return s.on("text_cache_enabled") ? s.size("requests") * s.size("asking") + count_in(outputs, 1, kCacheMisses) : 0;
}

std::int64_t encoded(Variant, const NamedTensors& outputs, const Setting&) {
  return count_in(outputs, 1, kCacheMisses);
}

// Every request is a hit or a miss, no miss is without a place, what is kept is kept once.
std::string wrong_counts(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& s) {
  const bool on = s.on("text_cache_enabled");
  for (std::int64_t level = 0; level < kCacheLevels; ++level) {
    const std::int64_t requests = inputs[level == 2 ? "asked" : "request"].numel(),
                       hits = count_in(outputs, level, kCacheHits), misses = count_in(outputs, level, kCacheMisses),
                       evictions = count_in(outputs, level, kCacheEvictions);
    if (hits < 0 || misses < 0 || hits + misses != requests) return "hits and misses are not what was asked for";
    if (!on && hits > 0) return "a hit without a cache";
    if (evictions < 0 || evictions > misses) return "more entries were given up than came";
  }
  for (const char* name : {"kept", "kept_surface"}) {
    const at::Tensor kept = outputs[name].cpu();
    std::vector<std::int64_t> seen;
    for (std::int64_t i = 0; i < kept.numel(); ++i) {
      const auto one = kept[i].item<std::int64_t>();
      if (one >= 0 && std::find(seen.begin(), seen.end(), one) != seen.end()) return "something is kept twice";
      if (one >= 0) seen.push_back(one);
    }
  }
  return outputs["unlimited"].item<std::int64_t>() < 0 || outputs["device_bytes"].item<std::int64_t>() < 0
             ? "fewer than no entries"
             : "";
}

// Each answer is written once, what is kept and the counts at the end.
Cost cost(const Setting& s) {
  const auto [requests, batch, cells, tokens, asking, limit] =
      real_sizes<6>(s, {"requests", "batch", "cells", "tokens", "asking", "limit"});
  return {requests * (batch * (8 + 4 * tokens + 4 * cells) + asking * 12) + 24 * limit + 72, 0};
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = check_cache_inputs;
  spec.proof = {{"scalar_reads", "", {}, {}, reads}, {"forward_calls.energy_flow.encoded_text", "", {}, {}, encoded}};
  spec.cost = cost;
  spec.invariants = {{"hits, misses and entries add up", wrong_counts}};
  const auto set = [](const char* name, std::int64_t place, std::int64_t value) {
    return [=](NamedTensors& inputs, Setting&) { inputs[name].mutable_data_ptr<std::int64_t>()[place] = value; };
  };
  spec.refusals = {{"a text that is not there", set("request", 0, 1 << 20), ErrorKind::kOutOfRange, "request"},
                   {"a surface that is not there", set("asked", 0, -1), ErrorKind::kOutOfRange, "asked"},
                   {"a version that is not there", set("version", 0, 1 << 20), ErrorKind::kOutOfRange, "version"},
                   {"a text that is kept behind a gap",
                    [](NamedTensors& inputs, Setting&) {
                      auto* const kept = inputs["kept"].mutable_data_ptr<std::int64_t>();
                      kept[0] = -1, kept[1] = 0;
                    },
                    ErrorKind::kOutOfRange, "kept"},
                   {"offsets that fall", set("pool_offsets", 1, -1), ErrorKind::kCorrupt, "pool_offsets"}};
  return spec;
}

}  // namespace twinbench::energy_flow::text_cache

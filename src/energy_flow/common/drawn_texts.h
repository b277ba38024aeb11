// Token ids of texts that a case draws: of many lengths, at the edges of what a text can be, or without a word.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "src/component.h"
#include "src/energy_flow/common/tokenizer.h"

namespace twinbench::energy_flow {

enum class Texts { kRagged, kEdges, kIdentical, kEmpty };
inline Texts texts_of(const Setting& s) { return static_cast<Texts>(static_cast<int>(s.option("texts"))); }
inline OptionSpec texts_option() {
  return of_inputs(choice_option(
      "texts", {"ragged", "edges", "identical", "empty"}, "ragged",
      "texts of many lengths; without a word, of one, too long, unknown, in turn; one text; no word at all"));
}

// Words of a text of kind `kind`. Counts follow from the kind alone, so that a case has the same work with any seed;
// which sample is of which kind turns with the seed.
inline std::int64_t words_of(const Setting& s, std::int64_t kind) {
  const std::int64_t most = s.size("max_length") - 2;
  switch (texts_of(s)) {
    case Texts::kRagged: return 1 + (most / 2 + 37 * kind) % most;
    case Texts::kIdentical: return most;
    case Texts::kEmpty: return 0;
    case Texts::kEdges: break;
  }
  const std::int64_t of_kind[] = {0, 0, 1, most + 2, std::min<std::int64_t>(most, 3), 1};
  return of_kind[kind % 6];
}

// token and length of so many texts.
inline void draw_texts(NamedTensors& inputs, const Setting& s, std::int64_t texts, std::uint64_t seed) {
  const auto mixed = [](std::uint64_t a, std::uint64_t b) {
    std::uint64_t x = (a + 1) * 0x9e3779b97f4a7c15u ^ (b + 7) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 31) * 0x94d049bb133111ebu;
    return x ^ x >> 29;
  };
  const std::int64_t most = s.size("max_length");
  auto* const ids = inputs["token"].mutable_data_ptr<std::int32_t>();
  for (std::int64_t sample = 0; sample < texts; ++sample) {
    const std::int64_t kind = (sample + static_cast<std::int64_t>(seed % 1024)) % texts;
    const std::uint64_t text =
        texts_of(s) == Texts::kIdentical ? seed * 131 : seed * 131 + static_cast<std::uint64_t>(kind);
    std::int32_t* const row = ids + sample * most;
    std::fill(row, row + most, kPadToken);
    std::int64_t count = 0;
    row[count++] = kClassToken;
    for (std::int64_t i = 0; i < words_of(s, kind) && count < most - 1; ++i) {
      const std::uint64_t drawn = mixed(text, static_cast<std::uint64_t>(i));
      const bool unknown = drawn % 13 == 5 || (texts_of(s) == Texts::kEdges && kind % 6 == 4);
      const auto words = static_cast<std::uint64_t>(s.size("vocabulary") - kFirstWord);
      row[count++] = unknown ? kUnknownToken : kFirstWord + static_cast<std::int32_t>((drawn >> 8) % words);
    }
    if (count == 1) row[count++] = kEmptyToken;
    row[count++] = kEndToken;
    inputs["length"].mutable_data_ptr<std::int32_t>()[sample] = static_cast<std::int32_t>(count);
  }
}

}  // namespace twinbench::energy_flow

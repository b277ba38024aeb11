// Words of texts (C23): blanks and lower-case letters; on a card, words compared byte by byte. Host and device.
#pragma once

#include <cstdint>

#include "kernels/common/arguments.h"

namespace twinbench::energy_flow {

struct Letters {
  const std::uint8_t* bytes = nullptr;
  std::int64_t size = 0;
};

// What a text without a word is to the encoder (C18): its start, "empty" and its end, then padding.
constexpr std::int32_t kTokensOfNoWord = 3;
TWINBENCH_HOST_DEVICE constexpr std::int32_t token_of_no_word(std::int64_t place) {
  return place == 0 ? 3 : place == 1 ? 4 : place == 2 ? 1 : 0;
}

TWINBENCH_HOST_DEVICE bool is_blank(std::uint8_t letter) { return letter == ' ' || (letter >= 9 && letter <= 13); }
TWINBENCH_HOST_DEVICE std::uint8_t lower_case(std::uint8_t letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<std::uint8_t>(letter + 32) : letter;
}

TWINBENCH_HOST_DEVICE bool begins_word(const Letters& text, std::int64_t at) {
  return !is_blank(text.bytes[at]) && (at == 0 || is_blank(text.bytes[at - 1]));
}

// Whether the words that begin there are the same.
TWINBENCH_HOST_DEVICE bool same_word(const Letters& a, std::int64_t i, const Letters& b, std::int64_t j) {
  for (;; ++i, ++j) {
    const bool a_ends = i >= a.size || is_blank(a.bytes[i]), b_ends = j >= b.size || is_blank(b.bytes[j]);
    if (a_ends || b_ends) return a_ends && b_ends;
    if (lower_case(a.bytes[i]) != lower_case(b.bytes[j])) return false;
  }
}

// Whether one of the text's words that begin before place `end` is the one that begins at place `at` of `of`.
TWINBENCH_HOST_DEVICE bool holds_word(const Letters& text, std::int64_t end, const Letters& of, std::int64_t at) {
  for (std::int64_t i = 0; i < end; ++i)
    if (begins_word(text, i) && same_word(text, i, of, at)) return true;
  return false;
}

// Whether a word begins there that the text has not had before.
TWINBENCH_HOST_DEVICE bool begins_new_word(const Letters& text, std::int64_t at) {
  return begins_word(text, at) && !holds_word(text, at, text, at);
}

}  // namespace twinbench::energy_flow

// Text as token ids and back (energy-flow specification, C18): words and punctuation marks of a vocabulary. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/energy_flow/common/vocabulary.h"

namespace twinbench::energy_flow {

constexpr std::int64_t kTokensOfText = 128;      // at most, start and end included: the documented max_length
constexpr std::int64_t kFewestTokensOfText = 3;  // start, one word, end

// ASCII white space: bytes 9 to 13 and 32.
inline bool is_space(char byte) { return byte == ' ' || (byte >= 9 && byte <= 13); }
// ASCII punctuation, each byte a token of its own: 33-47, 58-64, 91-96, 123-126.
inline bool is_punctuation(char byte) {
  return (byte >= 33 && byte <= 47) || (byte >= 58 && byte <= 64) || (byte >= 91 && byte <= 96) ||
         (byte >= 123 && byte <= 126);
}
inline char lowered(char byte) { return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte; }

// Calls body(std::string_view) for the words and punctuation marks of a text in order, ASCII letters lowered, until it
// returns false. All other bytes are parts of words: NUL, controls and those from 0x80 on. The view lasts until body
// returns.
template <class Body>
void each_word(std::string_view text, Body body) {
  std::string word;
  for (std::size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    word.assign(1, lowered(text[at]));
    const bool alone = is_punctuation(text[at++]);
    while (!alone && at < text.size() && !is_space(text[at]) && !is_punctuation(text[at])) word += lowered(text[at++]);
    if (!body(std::string_view(word))) return;
  }
}

struct TokenCounts {
  std::int64_t tokens = 0;   // written: from kFewestTokensOfText to max_length
  std::int64_t unknown = 0;  // of them kUnknownToken
};

// Start, the first max_length - 2 words, end; kEmptyToken stands for a text without a word. `ids` holds max_length.
// Throws kOutOfRange where max_length is below kFewestTokensOfText.
TokenCounts write_tokens(std::string_view text, const Vocabulary& vocabulary, std::int64_t max_length,
                         std::int32_t* ids);

// The same in memory of its own.
struct Tokens {
  std::vector<std::int32_t> ids;
  std::int64_t unknown = 0;
};
Tokens tokens_of(std::string_view text, const Vocabulary& vocabulary, std::int64_t max_length = kTokensOfText);

// The words of the ids, joined by one space each; the special ids are left out. Throws kOutOfRange for an id that the
// vocabulary does not have.
std::string text_of(const std::int32_t* ids, std::int64_t count, const Vocabulary& vocabulary);

}  // namespace twinbench::energy_flow

// Text as token ids and back.
#include "src/energy_flow/common/tokenizer.h"

#include <algorithm>

#include "src/common/error.h"

namespace twinbench::energy_flow {

TokenCounts write_tokens(std::string_view text, const Vocabulary& vocabulary, std::int64_t max_length,
                         std::int32_t* ids) {
  if (max_length < kFewestTokensOfText)
    throw Error(ErrorKind::kOutOfRange, "max_length", std::to_string(max_length),
                "a text takes at least " + std::to_string(kFewestTokensOfText) + " tokens: start, one word, end");
  TokenCounts counts;
  ids[counts.tokens++] = kClassToken;
  each_word(text, [&](std::string_view word) {
    if (counts.tokens == max_length - 1) return false;
    const std::int32_t id = vocabulary.id_of(word);
    counts.unknown += id == kUnknownToken ? 1 : 0;
    ids[counts.tokens++] = id;
    return true;
  });
  if (counts.tokens == 1) ids[counts.tokens++] = kEmptyToken;
  ids[counts.tokens++] = kEndToken;
  return counts;
}

Tokens tokens_of(std::string_view text, const Vocabulary& vocabulary, std::int64_t max_length) {
  // No text has more words than bytes.
  const std::int64_t most = std::min(max_length, static_cast<std::int64_t>(text.size()) + kFewestTokensOfText);
  Tokens tokens{std::vector<std::int32_t>(static_cast<std::size_t>(std::max<std::int64_t>(most, 0))), 0};
  const TokenCounts counts = write_tokens(text, vocabulary, most, tokens.ids.data());
  tokens.ids.resize(static_cast<std::size_t>(counts.tokens));
  tokens.unknown = counts.unknown;
  return tokens;
}

std::string text_of(const std::int32_t* ids, std::int64_t count, const Vocabulary& vocabulary) {
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    if (ids[i] >= 0 && ids[i] < kFirstWord) continue;
    const std::string& word = vocabulary.word(ids[i]);
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

}  // namespace twinbench::energy_flow

// Embeddings without a model: character n-gram feature hashing. Deterministic, independent of the machine, and close
// for texts that share wording, which is all that a benchmark's real data needs.
#pragma once

#include <cstdint>
#include <string_view>

namespace twinbench {

inline constexpr std::int64_t kHashedWidth = 768;

// The text, ASCII letters lowered, between the marks 0x02 and 0x03. Each of its byte n-grams, n = 3, 4, 5 (the whole,
// where it is shorter than n), is hashed by FNV-1a over 64 bits followed by an xor-shift-multiply mix; hash mod width
// is the element, the top bit the sign, and +-1 is added there. The row is divided by its L2 norm. If everything
// cancels, element (hash of the whole) mod width becomes 1, so that every text, the empty one too, has a row of norm 1.
void hashed_embedding(std::string_view text, std::int64_t width, float* row);

}  // namespace twinbench

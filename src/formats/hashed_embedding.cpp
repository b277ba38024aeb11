// Signed feature hashing of character n-grams.
#include "src/formats/hashed_embedding.h"

#include <algorithm>
#include <string>

#include "src/formats/row_check.h"

namespace twinbench {
namespace {

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  hash = (hash ^ (hash >> 32)) * 0x9E3779B97F4A7C15u;  // FNV's upper bits alone are poor for short inputs
  return hash ^ (hash >> 29);
}

}  // namespace

void hashed_embedding(std::string_view text, std::int64_t width, float* row) {
  std::string marked = "\x02";
  for (const char letter : text) marked += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  marked += '\x03';
  std::fill_n(row, width, 0.0f);
  const auto buckets = static_cast<std::uint64_t>(width);
  for (std::size_t n = 3; n <= 5; ++n) {
    const std::size_t length = std::min(n, marked.size());
    for (std::size_t at = 0; at + length <= marked.size(); ++at) {
      const std::uint64_t hash = hash_of(std::string_view(marked).substr(at, length));
      row[hash % buckets] += (hash >> 63) != 0 ? -1.0f : 1.0f;
    }
  }
  if (row_square_sum(row, width) == 0) row[hash_of(marked) % buckets] = 1.0f;
  normalise_row(row, width);
}

}  // namespace twinbench

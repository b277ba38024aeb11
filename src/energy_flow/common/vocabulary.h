// The vocabulary of the text components (energy-flow specification, C18): words and their ids, built from a dataset's
// texts, and its file. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace twinbench::energy_flow {

// Ids that are no words: padding (and what decoding starts from), the end, an unknown word, the start, an empty text.
constexpr std::int32_t kPadToken = 0, kEndToken = 1, kUnknownToken = 2, kClassToken = 3, kEmptyToken = 4;
constexpr std::int32_t kFirstWord = 5;
constexpr std::int64_t kVocabularySize = 30522;  // ids at most, the five above included

struct HashOfWord {
  using is_transparent = void;  // a view is looked up without a copy
  std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
};

class Vocabulary {
 public:
  // Word i has id kFirstWord + i. Throws kCorrupt where a word occurs twice, is empty, or is none that a text can give
  // (tokenizer.h); kOutOfRange beyond 2^30 words.
  explicit Vocabulary(std::vector<std::string> words = {});

  std::int64_t size() const { return kFirstWord + static_cast<std::int64_t>(words_.size()); }  // ids that there are
  std::int32_t id_of(std::string_view word) const;  // kUnknownToken where it has none
  // Throws kOutOfRange where the id is no word's.
  const std::string& word(std::int32_t id) const;
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::int32_t, HashOfWord, std::equal_to<>> ids_;
};

// Counts the words of texts. The most frequent ones get the first ids; of equally frequent ones, the first by bytes.
class WordCounts {
 public:
  void add(std::string_view text);
  // As many words as fit into `size` ids. Throws kOutOfRange where that is fewer than kFirstWord.
  Vocabulary vocabulary(std::int64_t size = kVocabularySize) const;

 private:
  std::unordered_map<std::string, std::int64_t, HashOfWord, std::equal_to<>> counts_;
};

// A text file: "twinbench vocabulary 1 <words> <CRC-32 of what follows, eight hexadecimal digits>", then one word a
// line (no word holds a line's end). Written whole or not at all.
void write_vocabulary(const std::string& path, const Vocabulary& vocabulary);
// Throws kInputOutput where there is none; kBadFile for another kind of file or version; kTruncated where words are
// missing; kCorrupt where the checksum or the words contradict what the first line says.
Vocabulary read_vocabulary(const std::string& path);

}  // namespace twinbench::energy_flow

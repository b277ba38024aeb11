// Words and their ids, and the vocabulary's file.
#include "src/energy_flow/common/vocabulary.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "src/common/error.h"
#include "src/energy_flow/common/tokenizer.h"
#include "src/formats/file_io.h"

namespace twinbench::energy_flow {
namespace {

constexpr std::string_view kMagic = "twinbench vocabulary 1 ";
constexpr const char* kRemedy = "build it again from the dataset's texts";

// Whether the tokenizer can give this: one punctuation mark, or other bytes without white space and capitals.
bool is_word(std::string_view word) {
  std::size_t given = 0;
  each_word(word, [&](std::string_view one) {
    given += one == word ? 1 : 2;
    return true;
  });
  return given == 1;
}

std::uint32_t checksum(std::string_view text) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<z_size_t>(text.size())));
}

std::string first_line(std::uint64_t words, std::uint32_t sum) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(sum));
  return std::string(kMagic) + std::to_string(words) + " " + text + "\n";
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> words) : words_(std::move(words)) {
  if (words_.size() > std::size_t{1} << 30)
    throw Error(ErrorKind::kOutOfRange, "vocabulary", std::to_string(words_.size()) + " words", "at most 2^30");
  ids_.reserve(words_.size());
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const auto refused = [&](const char* why) {
      return Error(ErrorKind::kCorrupt, "vocabulary", "word " + std::to_string(i) + " '" + words_[i] + "'",
                   std::string(why) + "; " + kRemedy);
    };
    if (!is_word(words_[i])) throw refused("no text has such a word");
    if (!ids_.emplace(words_[i], kFirstWord + static_cast<std::int32_t>(i)).second) throw refused("it occurs twice");
  }
}

std::int32_t Vocabulary::id_of(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? kUnknownToken : found->second;
}

const std::string& Vocabulary::word(std::int32_t id) const {
  if (id < kFirstWord || id >= size())
    throw Error(ErrorKind::kOutOfRange, "token id", std::to_string(id),
                "words have the ids from " + std::to_string(kFirstWord) + " to " + std::to_string(size() - 1));
  return words_[static_cast<std::size_t>(id - kFirstWord)];
}

void WordCounts::add(std::string_view text) {
  each_word(text, [this](std::string_view word) {
    const auto found = counts_.find(word);
    if (found == counts_.end())
      counts_.emplace(word, 1);
    else
      ++found->second;
    return true;
  });
}

Vocabulary WordCounts::vocabulary(std::int64_t size) const {
  if (size < kFirstWord)
    throw Error(ErrorKind::kOutOfRange, "vocab_size", std::to_string(size),
                "at least " + std::to_string(kFirstWord) + ": the ids that are no words");
  std::vector<std::pair<std::int64_t, std::string>> ranked;  // the count's negative: ascending order is the ids'
  ranked.reserve(counts_.size());
  for (const auto& [word, count] : counts_) ranked.emplace_back(-count, word);
  std::sort(ranked.begin(), ranked.end());
  ranked.resize(std::min(ranked.size(), static_cast<std::size_t>(size - kFirstWord)));
  std::vector<std::string> words;
  for (auto& [count, word] : ranked) words.push_back(std::move(word));
  return Vocabulary(std::move(words));
}

void write_vocabulary(const std::string& path, const Vocabulary& vocabulary) {
  std::string lines;
  for (const std::string& word : vocabulary.words()) lines += word + '\n';
  write_file(path, as_bytes(first_line(vocabulary.words().size(), checksum(lines)) + lines));
}

Vocabulary read_vocabulary(const std::string& path) {
  const MappedFile file(path);
  const std::string_view text = as_text(file.bytes());
  const std::size_t line = text.find('\n');
  const auto bad = [&path](ErrorKind kind, const std::string& what) { return Error(kind, path, what, kRemedy); };
  if (!text.starts_with(kMagic)) throw bad(ErrorKind::kBadFile, "no vocabulary of version 1");
  if (line == std::string_view::npos) throw bad(ErrorKind::kTruncated, "ends within its first line");
  const char *const begin = text.data() + kMagic.size(), *const end = text.data() + line;
  std::uint64_t count = 0;
  std::uint32_t sum = 0;
  const auto counted = std::from_chars(begin, end, count);
  if (counted.ec == std::errc() && counted.ptr < end) std::from_chars(counted.ptr + 1, end, sum, 16);
  if (text.substr(0, line + 1) != first_line(count, sum))  // written in this way and no other
    throw bad(ErrorKind::kBadFile, "its first line gives no count and checksum");
  const std::string_view lines = text.substr(line + 1);
  std::vector<std::string> words;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t until = std::min(lines.find('\n', at), lines.size());
    words.emplace_back(lines.substr(at, until - at));
    at = until + 1;
  }
  if (words.size() < count || !(lines.empty() || lines.ends_with('\n')))
    throw bad(ErrorKind::kTruncated, std::to_string(words.size()) + " of " + std::to_string(count) + " words");
  if (words.size() > count || checksum(lines) != sum)
    throw bad(ErrorKind::kCorrupt, "checksum or number of words is not that of its first line");
  return Vocabulary(std::move(words));
}

}  // namespace twinbench::energy_flow

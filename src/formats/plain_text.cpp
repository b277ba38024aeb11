// Splitting prose into sentences and pairing them.
#include "src/formats/plain_text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <unordered_set>

#include "src/common/error.h"
#include "src/formats/file_io.h"
#include "src/formats/hashed_embedding.h"

namespace twinbench {
namespace {

bool is_space(char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }
bool is_upper_or_digit(char letter) { return (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9'); }

// "x\bx" is how old text files print bold, "_\bx" underlined: the character that would stay visible is kept.
std::string fold_overstrikes(std::string_view text) {
  std::string folded;
  for (const char letter : text) {
    if (letter != '\b') {
      folded += letter;
    } else if (!folded.empty() && folded.back() != '\n') {
      folded.pop_back();
    }
  }
  return folded;
}

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
  while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
  return line;
}

bool is_abbreviation(std::string_view word) {
  static constexpr std::array<std::string_view, 12> kAbbreviations = {"Mr.", "Mrs.", "Ms.",  "Dr.",  "St.", "Prof.",
                                                                      "vs.", "e.g.", "i.e.", "etc.", "No.", "Wm."};
  const bool initial = word.size() == 2 && word[0] >= 'A' && word[0] <= 'Z';
  return initial || std::find(kAbbreviations.begin(), kAbbreviations.end(), word) != kAbbreviations.end();
}

bool ends_sentence(std::string_view word) {
  std::string_view core = word;
  while (!core.empty() && (core.back() == '"' || core.back() == '\'' || core.back() == ')')) core.remove_suffix(1);
  if (core.empty() || (core.back() != '.' && core.back() != '!' && core.back() != '?')) return false;
  return !is_abbreviation(core);
}

bool begins_sentence(std::string_view word) {
  while (!word.empty() && (word.front() == '"' || word.front() == '\'' || word.front() == '(')) word.remove_prefix(1);
  return !word.empty() && is_upper_or_digit(word.front());
}

std::vector<std::string> split_sentences(const std::vector<std::string_view>& words, const TextOptions& options) {
  std::vector<std::string> sentences;
  std::string sentence;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!sentence.empty()) sentence += ' ';
    sentence += words[i];
    ++count;
    const bool last = i + 1 == words.size();
    if (!last && !(ends_sentence(words[i]) && begins_sentence(words[i + 1]))) continue;
    if (count >= options.smallest_words && count <= options.largest_words) sentences.push_back(std::move(sentence));
    sentence.clear();
    count = 0;
  }
  return sentences;
}

void check(const TextOptions& options) {
  if (options.smallest_words < 1 || options.largest_words < options.smallest_words) {
    throw Error(ErrorKind::kOutOfRange, "words",
                std::to_string(options.smallest_words) + " to " + std::to_string(options.largest_words),
                "give 1 or more, the smaller first");
  }
  if (options.largest_rows < 0) {
    throw Error(ErrorKind::kOutOfRange, "rows", std::to_string(options.largest_rows), "give 0 (all) or more");
  }
  if (options.width < 1 || options.width > (1 << 20)) {
    throw Error(ErrorKind::kOutOfRange, "width", std::to_string(options.width),
                "embeddings have 1 to 1048576 elements");
  }
}

}  // namespace

std::vector<std::vector<std::string>> split_paragraphs(std::string_view text, const TextOptions& options) {
  const std::string folded = fold_overstrikes(text);
  std::vector<std::vector<std::string>> paragraphs;
  std::vector<std::string_view> words;
  const auto finish = [&] {
    auto sentences = split_sentences(words, options);
    if (!sentences.empty()) paragraphs.push_back(std::move(sentences));
    words.clear();
  };
  std::string_view rest = folded;
  while (!rest.empty()) {
    const std::size_t length = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, length));
    rest.remove_prefix(std::min(length + 1, rest.size()));
    if (line.empty() || line == "%" || line.starts_with("--")) {
      finish();
      continue;
    }
    for (std::size_t at = 0; at < line.size();) {
      std::size_t end = at;
      while (end < line.size() && !is_space(line[end])) ++end;
      if (end > at) words.push_back(line.substr(at, end - at));
      at = end + 1;
    }
  }
  finish();
  return paragraphs;
}

Dataset read_plain_text(const std::vector<std::string>& paths, const TextOptions& options) {
  check(options);
  std::vector<std::pair<std::string, std::string>> pairs;
  std::unordered_set<std::string> seen;
  for (const std::string& path : paths) {
    const MappedFile file(path);
    const std::string_view text = without_byte_order_mark(as_text(file.bytes()));
    if (text.find('\0') != std::string_view::npos) {
      throw Error(ErrorKind::kBadFile, path, "NUL bytes", "give plain text");
    }
    for (auto& sentences : split_paragraphs(text, options)) {
      const std::string* previous = nullptr;
      for (const std::string& sentence : sentences) {
        if (!seen.insert(sentence).second) {
          previous = nullptr;  // its neighbours were paired where it came first
          continue;
        }
        if (previous != nullptr) pairs.emplace_back(*previous, sentence);
        previous = &sentence;
      }
    }
  }
  if (pairs.empty()) {
    throw Error(ErrorKind::kBadArgument, "text", std::to_string(paths.size()) + " files",
                "no two neighbouring sentences of the wanted length: give more text, or other word limits");
  }
  const auto all = static_cast<std::int64_t>(pairs.size());
  Dataset dataset;
  dataset.format = "plain text";
  dataset.rows = options.largest_rows == 0 ? all : std::min(all, options.largest_rows);
  dataset.width = options.width;
  const auto elements = static_cast<std::size_t>(dataset.rows * dataset.width);
  dataset.inputs.resize(elements);
  dataset.targets.resize(elements);
  for (std::int64_t row = 0; row < dataset.rows; ++row) {
    const auto& [input, target] = pairs[static_cast<std::size_t>(row * all / dataset.rows)];
    dataset.texts.add(input);
    dataset.texts.add(target);
    hashed_embedding(input, dataset.width, dataset.inputs.data() + row * dataset.width);
    hashed_embedding(target, dataset.width, dataset.targets.data() + row * dataset.width);
  }
  return dataset;
}

std::vector<std::string> default_corpus() {
  std::set<std::string> paths;
  for (const char* folder : {"/usr/share/common-licenses", "/usr/share/games/fortunes"}) {
    std::error_code missing;
    for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
      const std::filesystem::path real = std::filesystem::canonical(entry.path(), missing);
      if (missing || !std::filesystem::is_regular_file(real, missing)) continue;
      const auto extension = real.extension();
      if (extension == ".dat" || extension == ".gz" || real.parent_path() != folder) continue;
      paths.insert(real.string());
    }
  }
  if (paths.empty()) {
    throw Error(ErrorKind::kInputOutput, "/usr/share/games/fortunes", "no text there",
                "install the package fortunes, or give text files of your own");
  }
  return {paths.begin(), paths.end()};
}

}  // namespace twinbench

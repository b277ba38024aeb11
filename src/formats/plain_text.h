// Sentence pairs from plain English text: prose with blank lines between paragraphs, or fortune files with % lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/formats/dataset.h"

namespace twinbench {

struct TextOptions {
  std::int64_t smallest_words = 4, largest_words = 40;  // sentences outside are left out
  std::int64_t largest_rows = 5021;  // more pairs are thinned evenly; 5021 is the documented dataset. 0: all of them
  std::int64_t width = 768;          // of the hashed embeddings
};

// The sentences of one text, paragraph by paragraph, in order: white space and overstrikes folded, attribution lines
// ("-- author") and sentences outside the word limits left out.
std::vector<std::vector<std::string>> split_paragraphs(std::string_view text, const TextOptions& options);

// Pairs (sentence, the sentence after it in the same paragraph) of all files in the given order. A sentence seen
// before, in any file, counts once: its repeats are left out. Embeddings are hashed. Throws kBadFile for a file that is
// no text (it has NUL bytes), kInputOutput, kOutOfRange for impossible options, kBadArgument where not one pair
// results.
Dataset read_plain_text(const std::vector<std::string>& paths, const TextOptions& options = {});

// The real English text this machine has: /usr/share/common-licenses and /usr/share/games/fortunes, links followed
// once, sorted. Throws kInputOutput, naming the package to install, where there is none.
std::vector<std::string> default_corpus();

}  // namespace twinbench

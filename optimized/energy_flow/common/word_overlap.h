// The decoder's loss (C23) without an allocation: words as hashes and places in the texts, sorted, in lasting memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/energy_flow/common/words.h"
#include "src/energy_flow/common/text_list.h"

namespace twinbench::energy_flow {

class WordSets {
 public:
  // Room for texts of so many bytes on either side.
  WordSets(std::int64_t predicted_bytes, std::int64_t wanted_bytes) {
    left_.reserve(most_words(predicted_bytes));
    right_.reserve(most_words(wanted_bytes));
  }

  // Words in both by words in either; 0 where either text is blank.
  double overlap(std::string_view predicted, std::string_view wanted) {
    collect(predicted, left_);
    collect(wanted, right_);
    std::size_t both = 0;
    for (auto left = left_.begin(), right = right_.begin(); left != left_.end() && right != right_.end();) {
      const int order = compare(*left, *right);
      both += order == 0;
      left += order <= 0;
      right += order >= 0;
    }
    const std::size_t either = left_.size() + right_.size() - both;
    return either == 0 ? 0 : static_cast<double>(both) / static_cast<double>(either);
  }

 private:
  struct Word {
    std::uint64_t hash;  // of the lower-case letters
    const char* letters;
    std::size_t length;
  };

  static std::size_t most_words(std::int64_t bytes) { return static_cast<std::size_t>(bytes + 1) / 2; }
  static std::uint8_t lower(char letter) { return lower_case(static_cast<std::uint8_t>(letter)); }
  static bool blank(char letter) { return is_blank(static_cast<std::uint8_t>(letter)); }

  // Below 0, 0 or above as a comes before b. Letters are only looked at where hashes are equal.
  static int compare(const Word& a, const Word& b) {
    if (a.hash != b.hash) return a.hash < b.hash ? -1 : 1;
    if (a.length != b.length) return a.length < b.length ? -1 : 1;
    for (std::size_t i = 0; i < a.length; ++i)
      if (const int difference = lower(a.letters[i]) - lower(b.letters[i]); difference != 0) return difference;
    return 0;
  }

  // Each word once, in order.
  static void collect(std::string_view text, std::vector<Word>& words) {
    constexpr std::uint64_t kStart = 0xcbf29ce484222325u, kPrime = 0x100000001b3u;  // FNV-1a
    words.clear();
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
      if (blank(*at)) {
        ++at;
        continue;
      }
      Word word{kStart, at, 0};
      for (; at != end && !blank(*at); ++at) word.hash = (word.hash ^ lower(*at)) * kPrime;
      word.length = static_cast<std::size_t>(at - word.letters);
      words.push_back(word);
    }
    std::sort(words.begin(), words.end(), [](const Word& a, const Word& b) { return compare(a, b) < 0; });
    words.erase(
        std::unique(words.begin(), words.end(), [](const Word& a, const Word& b) { return compare(a, b) == 0; }),
        words.end());
  }

  std::vector<Word> left_, right_;
};

// Of two lists.
class WordOverlap {
 public:
  WordOverlap(TextList predicted, TextList wanted)
      : predicted_(std::move(predicted)), wanted_(std::move(wanted)), words_(predicted_.bytes(), wanted_.bytes()) {}

  // Mean of 1 - overlap; 0 where nothing was decoded.
  double loss() {
    double sum = 0;
    for (std::int64_t i = 0; i < predicted_.size(); ++i) sum += 1 - words_.overlap(predicted_[i], wanted_[i]);
    return predicted_.size() == 0 ? 0 : sum / static_cast<double>(predicted_.size());
  }

 private:
  TextList predicted_, wanted_;
  WordSets words_;
};

}  // namespace twinbench::energy_flow

// The decoder's loss (C23) as one would write it: a set of lower-cased words for each text.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "src/energy_flow/common/text_list.h"

namespace twinbench::energy_flow {

inline std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.insert(word);
    word.clear();
  };
  for (const char letter : text) {
    const bool blank = letter == ' ' || (letter >= '\t' && letter <= '\r');
    if (blank)
      end_word();
    else
      word.push_back(letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter);
  }
  end_word();
  return words;
}

// Words in both by words in either; 0 where either text is blank.
inline double word_overlap(std::string_view a, std::string_view b) {
  const std::set<std::string> left = words_of(a), right = words_of(b);
  const auto both =
      std::count_if(left.begin(), left.end(), [&](const std::string& word) { return right.count(word) > 0; });
  const auto either = static_cast<std::int64_t>(left.size() + right.size()) - both;
  return static_cast<double>(both) / static_cast<double>(std::max<std::int64_t>(either, 1));
}

// Mean of 1 - overlap; 0 where nothing was decoded.
inline double decoder_loss(const TextList& predicted, const TextList& wanted) {
  double sum = 0;
  for (std::int64_t i = 0; i < predicted.size(); ++i) sum += 1 - word_overlap(predicted[i], wanted[i]);
  return predicted.size() == 0 ? 0 : sum / static_cast<double>(predicted.size());
}

}  // namespace twinbench::energy_flow

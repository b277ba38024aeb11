// Words, tokens and bytes of a training run's pairs.
#include "scenarios/energy_flow/training_texts.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "src/common/error.h"
#include "src/energy_flow/common/tokenizer.h"

namespace twinbench::energy_flow {

TrainingTexts::TrainingTexts(const DatasetPairs& of, std::int64_t pairs, const Setting& setting)
    : most_(setting.size("max_length")),
      tokens_(static_cast<std::size_t>(pairs * most_), kPadToken),
      wanted_(of.target_texts.begin(),
              of.target_texts.begin() + std::min<std::ptrdiff_t>(pairs, std::ssize(of.target_texts))) {
  if (std::ssize(of.input_texts) < pairs || std::ssize(wanted_) < pairs)
    throw Error(ErrorKind::kOutOfRange, "dataset", std::to_string(of.input_texts.size()) + " texts",
                "with text_bridge give a dataset of " + std::to_string(pairs) + " pairs with their texts");
  const std::int64_t ids = setting.size("vocabulary"), longest = setting.size("longest_word");
  WordCounts counts;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    counts.add(of.input_texts[static_cast<std::size_t>(pair)]);
    counts.add(of.target_texts[static_cast<std::size_t>(pair)]);
  }
  const Vocabulary vocabulary = counts.vocabulary(ids);
  for (std::int64_t pair = 0; pair < pairs; ++pair)
    lengths_.push_back(static_cast<std::int32_t>(
        write_tokens(of.input_texts[static_cast<std::size_t>(pair)], vocabulary, most_, tokens_.data() + pair * most_)
            .tokens));
  // Ids past the last word, and words longer than the decoder writes, are decoded as nothing.
  offsets_.assign(static_cast<std::size_t>(kFirstWord + 1), 0);
  for (std::int64_t id = kFirstWord; id < ids; ++id) {
    if (id < vocabulary.size())
      if (const std::string& word = vocabulary.word(static_cast<std::int32_t>(id)); std::ssize(word) <= longest)
        bytes_ += word;
    offsets_.push_back(std::ssize(bytes_));
  }
}

NamedTensors TrainingTexts::inputs(std::int64_t rows) const {
  std::vector<std::int64_t> sizes;
  for (const std::string& text : wanted_) sizes.push_back(std::ssize(text));
  std::sort(sizes.rbegin(), sizes.rend());
  std::int64_t most = 0;  // of any rows
  for (std::size_t i = 0; i < std::min(sizes.size(), static_cast<std::size_t>(rows)); ++i) most += sizes[i];
  const at::Tensor words = at::zeros({std::ssize(bytes_)}, at::kByte);
  if (!bytes_.empty()) std::memcpy(words.mutable_data_ptr<std::uint8_t>(), bytes_.data(), bytes_.size());
  // Rows that a window lacks have texts that nobody reads, and texts nevertheless: padding, the shortest, and empty.
  const NamedTensors made = {{"word_bytes", words},
                             {"word_offsets", at::tensor(offsets_, at::kLong)},
                             {"token", at::full({rows, most_}, std::int64_t{kPadToken}, at::kInt)},
                             {"length", at::full({rows}, kFewestTokensOfText, at::kInt)},
                             {"wanted_bytes", at::zeros({most}, at::kByte)},
                             {"wanted_offsets", at::zeros({rows + 1}, at::kLong)}};
  std::vector<std::int64_t> first(std::min(static_cast<std::size_t>(rows), wanted_.size()));
  std::iota(first.begin(), first.end(), 0);
  stage(first.data(), std::ssize(first), made);
  return made;
}

void TrainingTexts::stage(const std::int64_t* pair, std::int64_t rows, const NamedTensors& to) const {
  auto* const token = to["token"].mutable_data_ptr<std::int32_t>();
  auto* const bytes = to["wanted_bytes"].mutable_data_ptr<std::uint8_t>();
  auto* const offsets = to["wanted_offsets"].mutable_data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t from = pair[row];
    const std::string& wanted = wanted_[static_cast<std::size_t>(from)];
    std::copy_n(tokens_.data() + from * most_, most_, token + row * most_);
    to["length"].mutable_data_ptr<std::int32_t>()[row] = lengths_[static_cast<std::size_t>(from)];
    if (!wanted.empty()) std::memcpy(bytes + offsets[row], wanted.data(), wanted.size());
    offsets[row + 1] = offsets[row] + std::ssize(wanted);
  }
  for (std::int64_t row = rows; row + 1 < to["wanted_offsets"].numel(); ++row) offsets[row + 1] = offsets[rows];
}

}  // namespace twinbench::energy_flow

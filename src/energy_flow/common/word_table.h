// A vocabulary's words as tensors, and texts as the text components return them: rows of bytes that end in zeros.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "src/common/error.h"
#include "src/component.h"
#include "src/energy_flow/common/vocabulary.h"

namespace twinbench::energy_flow {

// word_bytes holds all words one after the other, word_offsets [vocabulary + 1] where each begins. The ids below
// kFirstWord have no bytes: they are no words.
inline std::vector<InputSpec> word_inputs() {
  return {data("word_bytes", "any", not_drawn()).of(Element::kByte).batch(std::nullopt),
          keys("word_offsets", "vocabulary + 1").batch(std::nullopt)};
}

// Letters in every word, so many that words differ: a function of the id and the seed, of at most `longest` bytes.
// Lengths are the id's alone, so that every seed gives the same shapes.
inline void draw_words(NamedTensors& inputs, std::int64_t vocabulary, std::int64_t longest, std::uint64_t seed) {
  std::string bytes;
  auto* const offsets = inputs["word_offsets"].mutable_data_ptr<std::int64_t>();
  std::int64_t needed = 1;  // letters that tell the words apart
  for (std::int64_t words = 26; words < vocabulary; words *= 26) ++needed;
  offsets[0] = 0;
  for (std::int64_t id = 0; id < vocabulary; ++id) {
    const std::int64_t room = longest - needed, more = room > 0 ? id * 37 % (room + 1) : 0;
    if (id >= kFirstWord) {
      for (std::int64_t digit = 0, rest = id; digit < needed; ++digit, rest /= 26)
        bytes += static_cast<char>('a' + (static_cast<std::uint64_t>(rest) + seed) % 26);
      bytes.append(static_cast<std::size_t>(more),
                   static_cast<char>('a' + (static_cast<std::uint64_t>(id) ^ seed) % 26));
    }
    offsets[id + 1] = static_cast<std::int64_t>(bytes.size());
  }
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr<std::uint8_t>(), bytes.data(), bytes.size());
  inputs.set("word_bytes", tensor);
}

// The words on the host, by id. Throws kCorrupt where offsets fall, leave the bytes or give a special id a word, and
// kOutOfRange for a word of more than `longest` bytes.
class WordTable {
 public:
  WordTable(const NamedTensors& inputs, std::int64_t longest) {
    const at::Tensor offsets = inputs["word_offsets"].cpu().contiguous(), bytes = inputs["word_bytes"].cpu();
    const at::Tensor letters = bytes.contiguous();
    bytes_.assign(reinterpret_cast<const char*>(letters.const_data_ptr<std::uint8_t>()),
                  static_cast<std::size_t>(letters.numel()));
    offsets_.assign(offsets.const_data_ptr<std::int64_t>(), offsets.const_data_ptr<std::int64_t>() + offsets.numel());
    for (std::size_t id = 0; id + 1 < offsets_.size(); ++id) {
      const std::int64_t first = offsets_[id], end = offsets_[id + 1];
      const bool special = id < static_cast<std::size_t>(kFirstWord);
      if (first < 0 || end < first || end > letters.numel() || (special && end > first))
        throw Error(ErrorKind::kCorrupt, "word_offsets", "entry " + std::to_string(id),
                    "they must not fall or leave word_bytes, and ids below 5 have no word");
      if (end - first > longest)  // both lie in the bytes: no overflow
        throw Error(ErrorKind::kOutOfRange, "word_offsets", "a word of " + std::to_string(end - first) + " bytes",
                    "give longest_word as it is");
    }
  }

  std::string_view word(std::int64_t id) const {
    const auto at = static_cast<std::size_t>(id);
    return std::string_view(bytes_).substr(static_cast<std::size_t>(offsets_[at]),
                                           static_cast<std::size_t>(offsets_[at + 1] - offsets_[at]));
  }

 private:
  std::string bytes_;
  std::vector<std::int64_t> offsets_;
};

// Empty, or why text row `b` is not the words of its first `length` tokens. On the host: ids [rows, tokens], bytes
// [rows, text_bytes] that end in zeros, sizes [rows].
inline std::string not_its_words(const WordTable& words, std::int64_t b, std::int64_t length, const at::Tensor& ids,
                                 const at::Tensor& bytes, const at::Tensor& sizes) {
  std::string text;
  for (std::int64_t i = 0; i < length; ++i) {
    const auto id = ids[b][i].item<std::int64_t>();
    if (id >= kFirstWord) text += (text.empty() ? "" : " ") + std::string(words.word(id));
  }
  if (sizes[b].item<std::int32_t>() != static_cast<std::int64_t>(text.size())) return "a text's length is another";
  const at::Tensor row = bytes[b].contiguous();
  text.resize(static_cast<std::size_t>(row.numel()));
  return std::memcmp(text.data(), row.const_data_ptr<std::uint8_t>(), text.size()) == 0
             ? ""
             : "a text is not its tokens' words";
}

inline Refusal special_id_with_a_word() {
  return {
      "a special id with a word",
      [](NamedTensors& inputs, Setting&) { inputs["word_offsets"].mutable_data_ptr<std::int64_t>()[kFirstWord] += 1; },
      ErrorKind::kCorrupt, "word_offsets"};
}

}  // namespace twinbench::energy_flow

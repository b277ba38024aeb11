// Texts as rows of bytes, [batch, text_bytes] with a length each, and a vocabulary's words beside them; their tokens.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "src/common/error.h"
#include "src/component.h"
#include "src/energy_flow/common/tokenizer.h"
#include "src/energy_flow/common/word_table.h"

namespace twinbench::energy_flow {

inline std::vector<InputSpec> text_row_inputs() {
  return {data("text", "batch, text_bytes", not_drawn()).of(Element::kByte), keys("text_length", "batch").batch(0)};
}

// Bytes past a text's end are zeros.
inline void set_text_rows(NamedTensors& inputs, const std::vector<std::string>& texts, std::int64_t text_bytes) {
  const at::Tensor& rows = inputs["text"];
  auto* const bytes = rows.mutable_data_ptr<std::uint8_t>();
  if (rows.numel() > 0) std::memset(bytes, 0, static_cast<std::size_t>(rows.numel()));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto length = std::min(static_cast<std::int64_t>(texts[i].size()), text_bytes);
    if (length > 0)
      std::memcpy(bytes + static_cast<std::int64_t>(i) * text_bytes, texts[i].data(), static_cast<std::size_t>(length));
    inputs["text_length"].mutable_data_ptr<std::int64_t>()[i] = length;
  }
}

// The texts on the host. Throws kOutOfRange where a length is no row's.
class TextRows {
 public:
  explicit TextRows(const NamedTensors& inputs)
      : text_(inputs["text"].cpu().contiguous()), length_(inputs["text_length"].cpu().contiguous()) {
    for (std::int64_t i = 0; i < size(); ++i)
      if (length(i) < 0 || length(i) > text_.size(1))
        throw Error(ErrorKind::kOutOfRange, "text_length", std::to_string(length(i)) + " of text " + std::to_string(i),
                    "from 0 to the " + std::to_string(text_.size(1)) + " bytes of a row");
  }

  std::int64_t size() const { return text_.size(0); }
  std::string_view operator[](std::int64_t text) const {
    return {reinterpret_cast<const char*>(text_.const_data_ptr<std::uint8_t>()) + text * text_.size(1),
            static_cast<std::size_t>(length(text))};
  }

 private:
  std::int64_t length(std::int64_t text) const { return length_.const_data_ptr<std::int64_t>()[text]; }
  at::Tensor text_, length_;
};

// The words of word_bytes and word_offsets, by which texts become ids.
inline Vocabulary vocabulary_of(const NamedTensors& inputs, std::int64_t longest) {
  const WordTable table(inputs, longest);
  std::vector<std::string> words;
  for (std::int64_t id = kFirstWord; id + 1 < inputs["word_offsets"].numel(); ++id) words.emplace_back(table.word(id));
  return Vocabulary(std::move(words));
}

}  // namespace twinbench::energy_flow

// Token ids of a batch of texts as the loader makes them (tokenizer.h): padded rows, and how many of each are a text's.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "src/common/error.h"
#include "src/component.h"
#include "src/energy_flow/common/tokenizer.h"

namespace twinbench::energy_flow {

// token [batch, max_length], kPadToken past a text's end; length [batch].
inline std::vector<InputSpec> token_inputs() {
  return {data("token", "batch, max_length", not_drawn()).of(Element::kInt32).without_gradient(),
          data("length", "batch", not_drawn()).of(Element::kInt32).without_gradient()};
}

// Throws kOutOfRange where a length is no text's or an id none of the vocabulary's.
inline void check_tokens(const NamedTensors& inputs, const Setting& setting) {
  const at::Tensor tokens = inputs["token"].cpu().contiguous(), lengths = inputs["length"].cpu().contiguous();
  const auto *const ids = tokens.const_data_ptr<std::int32_t>(), *const length = lengths.const_data_ptr<std::int32_t>();
  const std::int64_t most = setting.size("max_length"), vocabulary = setting.size("vocabulary");
  for (std::int64_t b = 0; b < lengths.numel(); ++b)
    if (length[b] < kFewestTokensOfText || length[b] > most)
      throw Error(ErrorKind::kOutOfRange, "length", std::to_string(length[b]) + " of text " + std::to_string(b),
                  "from " + std::to_string(kFewestTokensOfText) + " to max_length");
  for (std::int64_t i = 0; i < tokens.numel(); ++i)
    if (ids[i] < 0 || ids[i] >= vocabulary)
      throw Error(ErrorKind::kOutOfRange, "token", std::to_string(ids[i]), "ids are from 0 to vocabulary - 1");
}

inline Refusal text_beyond_its_row() {
  return {"a text longer than its row",
          [](NamedTensors& inputs, Setting& setting) {
            inputs["length"].mutable_data_ptr<std::int32_t>()[0] =
                static_cast<std::int32_t>(setting.size("max_length")) + 1;
          },
          ErrorKind::kOutOfRange, "length"};
}

}  // namespace twinbench::energy_flow

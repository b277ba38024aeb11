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

// Throws kOutOfRange where a length is no text's or an id none of the vocabulary's. ids [batch, max_length], lengths
// [batch], on the host.
inline void check_tokens(const std::int32_t* ids, const std::int32_t* lengths, std::int64_t batch, std::int64_t most,
                         std::int64_t vocabulary) {
  for (std::int64_t b = 0; b < batch; ++b)
    if (lengths[b] < kFewestTokensOfText || lengths[b] > most)
      throw Error(ErrorKind::kOutOfRange, "length", std::to_string(lengths[b]) + " of text " + std::to_string(b),
                  "from " + std::to_string(kFewestTokensOfText) + " to max_length");
  for (std::int64_t i = 0; i < batch * most; ++i)
    if (ids[i] < 0 || ids[i] >= vocabulary)
      throw Error(ErrorKind::kOutOfRange, "token", std::to_string(ids[i]), "ids are from 0 to vocabulary - 1");
}

// The same of the inputs as they are at set-up.
inline void check_tokens(const NamedTensors& inputs, const Setting& setting) {
  const at::Tensor tokens = inputs["token"].cpu().contiguous(), lengths = inputs["length"].cpu().contiguous();
  check_tokens(tokens.const_data_ptr<std::int32_t>(), lengths.const_data_ptr<std::int32_t>(), lengths.numel(),
               setting.size("max_length"), setting.size("vocabulary"));
}

}  // namespace twinbench::energy_flow

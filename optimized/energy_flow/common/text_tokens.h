// A batch of texts as token rows without padding, made ahead of the runs, where the loader does it.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/energy_flow/common/encoder_rows.h"
#include "src/named_tensors.h"
#include "src/setting.h"

namespace twinbench::energy_flow {

// Rows of a table that were taken, and by which tokens: entries [begin[i], begin[i + 1]) of the list.
struct TakenRows {
  at::Tensor begin, list;  // int32, [entries + 1], [tokens]
};

struct TextTokens {
  // Reads `text`, `text_length` and the words of the inputs. Lies on the setting's device.
  TextTokens(const NamedTensors& inputs, const Setting& setting);

  TokenRows rows() const;
  std::int64_t count = 0, longest = 0;            // tokens of all texts, of the longest
  at::Tensor token, length, unknown;              // as the component returns them: [batch, max_length] int64, int32
  at::Tensor id, place, text, first_row;          // int32
  TakenRows words, places;                        // of the embedding and of the positions
};

}  // namespace twinbench::energy_flow

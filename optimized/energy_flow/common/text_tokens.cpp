// Texts as token rows.
#include "optimized/energy_flow/common/text_tokens.h"

#include <ATen/ops/zeros.h>

#include "optimized/common/tensors.h"

namespace twinbench::energy_flow {

TextTokens::TextTokens(const NamedTensors& inputs, const Setting& setting)
    : packed_(!setting.device.takes_cuda_path()),
      texts_(setting.size("batch")),
      most_(setting.size("max_length")),
      capacity_(texts_ * most_),
      count_(capacity_),
      token_(inputs["token"].contiguous()),
      length_(inputs["length"].contiguous()) {
  at::Tensor place = at::zeros({capacity_}, at::kInt), text = at::zeros({capacity_}, at::kInt);
  at::Tensor first = at::zeros({texts_}, at::kInt);
  for (std::int64_t row = 0; row < capacity_; ++row) {
    data<std::int32_t>(place)[row] = static_cast<std::int32_t>(row % most_);
    data<std::int32_t>(text)[row] = static_cast<std::int32_t>(row / most_);
  }
  for (std::int64_t b = 0; b < texts_; ++b) data<std::int32_t>(first)[b] = static_cast<std::int32_t>(b * most_);
  place_ = place.to(setting.device);
  text_ = text.to(setting.device);
  first_row_ = first.to(setting.device);
  id_ = packed_ ? at::zeros({capacity_}, at::kInt) : token_.view({capacity_});
}

void TextTokens::read() {
  if (!packed_) return;
  const std::int32_t *const ids = data<std::int32_t>(token_), *const lengths = data<std::int32_t>(length_);
  count_ = 0;
  for (std::int64_t b = 0; b < texts_; ++b) {
    data<std::int32_t>(first_row_)[b] = static_cast<std::int32_t>(count_);
    for (std::int32_t i = 0; i < lengths[b]; ++i, ++count_) {
      data<std::int32_t>(id_)[count_] = ids[b * most_ + i];
      data<std::int32_t>(place_)[count_] = i;
      data<std::int32_t>(text_)[count_] = static_cast<std::int32_t>(b);
    }
  }
}

TokenRows TextTokens::rows() const {
  return {.id = data<std::int32_t>(id_),
          .place = data<std::int32_t>(place_),
          .text = data<std::int32_t>(text_),
          .first_row = data<std::int32_t>(first_row_),
          .length = data<std::int32_t>(length_)};
}

}  // namespace twinbench::energy_flow

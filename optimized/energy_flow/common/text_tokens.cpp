// Texts as token rows.
#include "optimized/energy_flow/common/text_tokens.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

#include "optimized/common/tensors.h"
#include "src/energy_flow/common/text_rows.h"

namespace twinbench::energy_flow {
namespace {

at::Tensor on_device(const std::vector<std::int32_t>& values, const Setting& setting) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kInt);
  std::copy(values.begin(), values.end(), data<std::int32_t>(tensor));
  return tensor.to(setting.device);
}

TakenRows taken_rows(const std::vector<std::int32_t>& entry_of_token, std::int64_t entries, const Setting& setting) {
  std::vector<std::int32_t> begin(static_cast<std::size_t>(entries) + 1), list(entry_of_token.size());
  for (const std::int32_t entry : entry_of_token) ++begin[static_cast<std::size_t>(entry) + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<std::int32_t> next(begin.begin(), begin.end() - 1);
  for (std::size_t i = 0; i < entry_of_token.size(); ++i)
    list[static_cast<std::size_t>(next[static_cast<std::size_t>(entry_of_token[i])]++)] = static_cast<std::int32_t>(i);
  return {on_device(begin, setting), on_device(list, setting)};
}

}  // namespace

TextTokens::TextTokens(const NamedTensors& inputs, const Setting& setting) {
  const TextRows texts(inputs);
  const Vocabulary vocabulary = vocabulary_of(inputs, setting.size("longest_word"));
  const std::int64_t most = setting.size("max_length");
  std::vector<std::int32_t> ids, places, whose, firsts, lengths, unknowns;
  at::Tensor all = at::zeros({texts.size(), most}, at::kLong);
  for (std::int64_t b = 0; b < texts.size(); ++b) {
    const Tokens tokens = tokens_of(texts[b], vocabulary, most);
    firsts.push_back(static_cast<std::int32_t>(ids.size()));
    lengths.push_back(static_cast<std::int32_t>(tokens.ids.size()));
    unknowns.push_back(static_cast<std::int32_t>(tokens.unknown));
    std::copy(tokens.ids.begin(), tokens.ids.end(), data<std::int64_t>(all) + b * most);
    for (std::int32_t i = 0; i < lengths.back(); ++i) {
      places.push_back(i);
      whose.push_back(static_cast<std::int32_t>(b));
    }
    ids.insert(ids.end(), tokens.ids.begin(), tokens.ids.end());
    longest = std::max<std::int64_t>(longest, lengths.back());
  }
  count = static_cast<std::int64_t>(ids.size());
  token = all.to(setting.device);
  length = on_device(lengths, setting);
  unknown = on_device(unknowns, setting);
  id = on_device(ids, setting);
  place = on_device(places, setting);
  text = on_device(whose, setting);
  first_row = on_device(firsts, setting);
  if (!setting.backward()) return;
  words = taken_rows(ids, setting.size("vocabulary"), setting);
  this->places = taken_rows(places, setting.size("positions"), setting);
}

TokenRows TextTokens::rows() const {
  return {.id = data<std::int32_t>(id),
          .place = data<std::int32_t>(place),
          .text = data<std::int32_t>(text),
          .first_row = data<std::int32_t>(first_row),
          .length = data<std::int32_t>(length)};
}

}  // namespace twinbench::energy_flow

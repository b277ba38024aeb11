// What every loader of sentence pairs delivers, and its invariant: each row once, with its own embeddings and texts.
#pragma once

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/component.h"

namespace twinbench::energy_flow {

// Embeddings, row numbers and texts of the delivered rows, in their order.
inline std::vector<OutputSpec> delivered_outputs() {
  return {exact_output("x", "any, width"), exact_output("y", "any, width"),
          exact_output("rows", "any", Element::kInt64), exact_output("text_bytes", "any", Element::kByte),
          exact_output("text_offsets", "any", Element::kInt64)};
}

// Embeddings of either side, read once and written once, and the long text where all rows are delivered: beside it the
// others are as good as nothing.
inline Cost delivery_cost(std::int64_t rows, const Setting& setting) {
  const double long_text = rows > 0 && rows == setting.size("rows") ? setting.option("long_text") : 0;
  return {2 * (2 * 4 * static_cast<double>(rows * setting.size("width")) + long_text), 0};
}

// Independent of the variants: looks up what was delivered ("rows", "x", "y", "text_bytes", "text_offsets") in the
// inputs. `expected_rows`: how many there must be. Returns an empty string, or what is broken.
inline std::string broken_delivery(const NamedTensors& inputs, const NamedTensors& outputs,
                                   std::int64_t expected_rows) {
  const at::Tensor rows = outputs["rows"].contiguous();
  if (rows.numel() != expected_rows) return "another number of rows than the batches hold";
  const at::Tensor offsets = outputs["text_offsets"].contiguous();
  const auto* const offset = offsets.const_data_ptr<std::int64_t>();
  if (offsets.numel() != 2 * expected_rows + 1 || offset[0] != 0 || !std::is_sorted(offset, offset + offsets.numel()) ||
      offset[offsets.numel() - 1] != outputs["text_bytes"].numel())
    return "texts do not lie one behind the other";
  const auto text = [](const NamedTensors& from, std::int64_t index) {
    const auto* const ends = from["text_offsets"].const_data_ptr<std::int64_t>() + index;
    return std::string_view(reinterpret_cast<const char*>(from["text_bytes"].const_data_ptr<std::uint8_t>()) + ends[0],
                            static_cast<std::size_t>(ends[1] - ends[0]));
  };
  const std::pair<const char*, const char*> sides[] = {{"x", "input_embeddings"}, {"y", "target_embeddings"}};
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < rows.numel(); ++i) {
    const std::int64_t row = rows.const_data_ptr<std::int64_t>()[i];
    const std::string name = "row " + std::to_string(row);
    if (row < 0 || row >= inputs["input_embeddings"].size(0) || !seen.insert(row).second)
      return name + " is out of range or came twice";
    for (std::int64_t side = 0; side < 2; ++side) {
      if (text(outputs, 2 * i + side) != text(inputs, 2 * row + side)) return "a text of " + name + " is another one";
      const at::Tensor source = inputs[sides[side].second].select(0, row).contiguous();
      const at::Tensor got = outputs[sides[side].first].select(0, i).contiguous();
      if (std::memcmp(source.const_data_ptr(), got.const_data_ptr(), got.nbytes()) != 0)
        return "an embedding of " + name + " is another one";
    }
  }
  return "";
}

}  // namespace twinbench::energy_flow

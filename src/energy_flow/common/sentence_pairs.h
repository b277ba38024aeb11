// Sentence pairs as tensors, and the private dataset file that the file components write from them during setup.
// Shared by the specs and the variants of dataset_file, dataset_loader and collation.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "src/common/error.h"
#include "src/common/philox.h"
#include "src/component.h"
#include "src/formats/efds.h"
#include "src/formats/efds_prepare.h"
#include "src/formats/file_io.h"
#include "src/formats/row_check.h"

namespace twinbench::energy_flow {

// Length in bytes of text `index` (2 * row, or 2 * row + 1): a function of the index alone, so that every seed gives
// the same shapes. Text 3 and every 16th after it are empty, which is legal.
inline std::int64_t sample_text_length(std::int64_t index) { return index % 16 == 3 ? 0 : 5 + index * 37 % 61; }

// The inputs of the file components: embeddings of norm about 1, and all texts one after the other. finish_pairs sets
// the texts: words of lower-case letters; the adversarial distribution puts bytes in that are no UTF-8.
inline std::vector<InputSpec> pair_inputs() {
  std::vector<InputSpec> inputs = {data("input_embeddings", "rows, width", from_case(0, 1, "width")),
                                   data("target_embeddings", "rows, width", from_case(1, 1, "width")),
                                   data("text_bytes", "any", not_drawn()).of(Element::kByte),
                                   keys("text_offsets", "2 * rows + 1")};
  for (auto& input : inputs) input.batch_axis = std::nullopt;  // they are in a file before run() starts
  return inputs;
}

inline OptionSpec invalid_every_option() {
  return of_inputs(
      count_option("invalid_every", 0, 0, 1 << 20, "spoils every k-th row: NaN, Inf, norm 0, norm 200, in turn"));
}

inline OptionSpec long_text_option() {
  return of_inputs(count_option("long_text", 0, 0, 1 << 20, "bytes of the second text; 0: as many as others have"));
}

inline void finish_pairs(NamedTensors& drawn, const Setting& setting, std::uint64_t seed) {
  const std::int64_t rows = setting.size("rows"), width = setting.size("width");
  const auto every = static_cast<std::int64_t>(setting.option("invalid_every"));
  // One number, or two, may by chance be so near to 0 that the row is unfit; only those spoilt on purpose shall be.
  if (setting.input_case.distribution == "normal")
    for (const char* side : {"input_embeddings", "target_embeddings"}) {
      auto* values = drawn[side].mutable_data_ptr<float>();
      for (std::int64_t row = 0; row < rows; ++row, values += width)
        if (row_square_sum(values, width) < 4 * kSmallestRowNorm * kSmallestRowNorm) values[0] += 0.5f;
    }
  for (std::int64_t row = every - 1, kind = 0; every > 0 && row < rows; row += every, ++kind) {
    const at::Tensor& side = drawn[kind % 2 == 0 ? "input_embeddings" : "target_embeddings"];
    float* values = side.mutable_data_ptr<float>() + row * width;
    if (kind % 4 == 0) values[width / 2] = std::numeric_limits<float>::quiet_NaN();
    if (kind % 4 == 1) values[width - 1] = -std::numeric_limits<float>::infinity();
    if (kind % 4 == 2) std::memset(values, 0, static_cast<std::size_t>(width) * sizeof(float));
    if (kind % 4 == 3) values[0] = 200.0f;
  }
  auto* offset = drawn["text_offsets"].mutable_data_ptr<std::int64_t>();
  offset[0] = 0;
  const auto longest = static_cast<std::int64_t>(setting.option("long_text"));
  for (std::int64_t text = 0; text < 2 * rows; ++text)
    offset[text + 1] = offset[text] + (text == 1 && longest > 0 ? longest : sample_text_length(text));
  at::Tensor bytes = at::empty({offset[2 * rows]}, at::kByte);
  auto* letter = bytes.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < bytes.numel(); ++i) {
    const std::uint32_t word =
        philox(seed, static_cast<std::uint32_t>(i), 0, 0, philox_tag(PhiloxStream::kSyntheticData, 3)).w[0];
    letter[i] = word % 6 == 0 ? ' ' : static_cast<std::uint8_t>('a' + (word >> 8) % 26);
    if (setting.input_case.distribution == "adversarial" && word % 11 == 0)
      letter[i] = static_cast<std::uint8_t>(0x80 | (word >> 8));
  }
  drawn.set("text_bytes", bytes);
}

// What the signature cannot say of the texts: their offsets must not fall or leave the bytes. Throws kCorrupt.
inline void check_texts(const NamedTensors& inputs) {
  const at::Tensor offsets = inputs["text_offsets"].contiguous();
  const std::int64_t *at = offsets.const_data_ptr<std::int64_t>(), bytes = inputs["text_bytes"].numel();
  for (std::int64_t i = 0; i < offsets.numel(); ++i)
    if (at[i] < 0 || at[i] > bytes || (i > 0 && at[i] < at[i - 1]))
      throw Error(ErrorKind::kCorrupt, "text_offsets", "entry " + std::to_string(i),
                  "they must not fall or leave text_bytes");
}

// The pairs as an EFDS file under the system's temporary folder, removed by the destructor. Embeddings are stored as
// fp32.
class PairFile {
 public:
  PairFile(const NamedTensors& inputs, bool prepared) {
    check_texts(inputs);
    const at::Tensor x = inputs["input_embeddings"].to(at::kFloat).contiguous(),
                     y = inputs["target_embeddings"].to(at::kFloat).contiguous();
    const at::Tensor bytes = inputs["text_bytes"].contiguous(), offsets = inputs["text_offsets"].contiguous();
    Dataset dataset;
    dataset.rows = x.size(0);
    dataset.width = x.size(1);
    dataset.inputs.assign(x.const_data_ptr<float>(), x.const_data_ptr<float>() + x.numel());
    dataset.targets.assign(y.const_data_ptr<float>(), y.const_data_ptr<float>() + y.numel());
    const auto* offset = offsets.const_data_ptr<std::int64_t>();
    dataset.texts = TextTable(std::string(reinterpret_cast<const char*>(bytes.const_data_ptr<std::uint8_t>()),
                                          static_cast<std::size_t>(bytes.numel())),
                              std::vector<std::uint64_t>(offset, offset + offsets.numel()));
    write_efds(path(), dataset);
    if (prepared) prepare_efds(EfdsFile(path()));
  }
  std::string path() const { return directory_.file("pairs.efds"); }

 private:
  TemporaryDirectory directory_;
};

// Texts as the outputs name them: "text_bytes" uint8 and "text_offsets" int64, one after the other.
template <typename Texts>
void set_texts(NamedTensors& outputs, const Texts& texts) {
  at::Tensor offsets = at::empty({static_cast<std::int64_t>(texts.size()) + 1}, at::kLong);
  auto* offset = offsets.template mutable_data_ptr<std::int64_t>();
  *offset = 0;
  for (const auto& text : texts) {
    offset[1] = offset[0] + static_cast<std::int64_t>(text.size());
    ++offset;
  }
  at::Tensor bytes = at::empty({*offset}, at::kByte);
  auto* at = bytes.template mutable_data_ptr<std::uint8_t>();
  for (const auto& text : texts) {
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    at += text.size();
  }
  outputs.set("text_bytes", bytes);
  outputs.set("text_offsets", offsets);
}

}  // namespace twinbench::energy_flow

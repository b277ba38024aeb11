// A dataset as safetensors tensors.
#include "src/common/error.h"
#include "src/formats/convert.h"
#include "src/formats/float_formats.h"
#include "src/formats/safetensors.h"

namespace twinbench {
namespace {

constexpr char kInputs[] = "input_embeddings", kTargets[] = "target_embeddings", kBytes[] = "text_bytes",
               kOffsets[] = "text_offsets";

std::vector<float> widen_all(const TensorBytes& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint8_t* at = tensor.bytes.data() + i * bytes_of(tensor.type);
    switch (tensor.type) {
      case ElementType::kF32: values[i] = load_little<float>(at); break;
      case ElementType::kF64: values[i] = static_cast<float>(load_little<double>(at)); break;
      case ElementType::kF16: values[i] = widen_f16(load_little<std::uint16_t>(at)); break;
      case ElementType::kBf16: values[i] = widen_bf16(load_little<std::uint16_t>(at)); break;
      default:
        throw Error(ErrorKind::kBadDtype, tensor.name, name_of(tensor.type), "embeddings are F32, BF16, F16 or F64");
    }
  }
  return values;
}

void read_texts(const SafetensorsContents& contents, Dataset& dataset) {
  const TensorBytes &bytes = contents.at(kBytes), &offsets = contents.at(kOffsets);
  if (bytes.type != ElementType::kU8 || offsets.type != ElementType::kI64) {
    throw Error(ErrorKind::kBadDtype, kOffsets, name_of(offsets.type), "text_bytes is U8 and text_offsets is I64");
  }
  if (offsets.elements() != 2 * dataset.rows + 1) {
    throw Error(ErrorKind::kDimensionMismatch, kOffsets, std::to_string(offsets.elements()) + " offsets",
                std::to_string(dataset.rows) + " rows need " + std::to_string(2 * dataset.rows + 1));
  }
  std::vector<std::uint64_t> values(static_cast<std::size_t>(offsets.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = load_little<std::uint64_t>(offsets.bytes.data() + 8 * i);
    if (values[i] > bytes.bytes.size() || (i > 0 && values[i] < values[i - 1])) {
      throw Error(ErrorKind::kCorrupt, kOffsets, "entry " + std::to_string(i),
                  "they must not fall or leave text_bytes");
    }
  }
  dataset.texts = TextTable(std::string(as_text(bytes.bytes)), std::move(values));
}

}  // namespace

Dataset parse_dataset_safetensors(ByteSpan file) {
  const SafetensorsContents contents = parse_safetensors(file);
  const TensorBytes &inputs = contents.at(kInputs), &targets = contents.at(kTargets);
  if (inputs.shape.size() != 2 || inputs.shape[1] < 1 || inputs.shape[1] > (1 << 20)) {
    throw Error(ErrorKind::kBadShape, kInputs, std::to_string(inputs.shape.size()) + " axes",
                "it must be [rows, width]");
  }
  if (targets.shape != inputs.shape) {
    throw Error(ErrorKind::kDimensionMismatch, kTargets, "another shape", "it must have that of input_embeddings");
  }
  Dataset dataset;
  dataset.format = "safetensors";
  // An empty tensor may claim any number of rows of width 0, but the width is at least 1: the rows are backed by bytes.
  dataset.rows = inputs.shape[0];
  dataset.width = inputs.shape[1];
  dataset.inputs = widen_all(inputs);
  dataset.targets = widen_all(targets);
  if (inputs.type == ElementType::kBf16 && targets.type == ElementType::kBf16) dataset.stored = StoredType::kBf16;
  read_texts(contents, dataset);
  return dataset;
}

void write_dataset_safetensors(const std::string& path, const Dataset& dataset) {
  check_sizes(dataset);
  const auto bytes = [](const auto& values) {
    return ByteSpan(reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(values[0]));
  };
  const auto& offsets = dataset.texts.offsets();
  const ByteSpan blob = as_bytes(dataset.texts.blob());
  write_safetensors(path,
                    {{kInputs, ElementType::kF32, {dataset.rows, dataset.width}, bytes(dataset.inputs)},
                     {kTargets, ElementType::kF32, {dataset.rows, dataset.width}, bytes(dataset.targets)},
                     {kBytes, ElementType::kU8, {static_cast<std::int64_t>(blob.size())}, blob},
                     {kOffsets, ElementType::kI64, {static_cast<std::int64_t>(offsets.size())}, bytes(offsets)}},
                    {{"format", "twinbench dataset"}});
}

}  // namespace twinbench

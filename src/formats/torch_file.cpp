// From the archive's pickle and storages to a dataset.
#include "src/formats/torch_file.h"

#include <algorithm>
#include <string>

#include "src/common/error.h"
#include "src/formats/float_formats.h"
#include "src/formats/pickle.h"
#include "src/formats/zip_archive.h"

namespace twinbench {
namespace {

using Kind = PickleValue::Kind;

// Every entry lies in one folder, whatever its name: "<folder>/data.pkl".
std::string find_folder(const ZipArchive& archive) {
  for (const ZipEntry& entry : archive.entries()) {
    const std::size_t slash = entry.name.find('/');
    if (slash != std::string::npos && entry.name.substr(slash) == "/data.pkl") return entry.name.substr(0, slash + 1);
  }
  throw Error(ErrorKind::kBadFile, "torch file", "no data.pkl",
              "give a file written by torch.save, not another archive");
}

const PickleValue& require(const PickleValue& root, const std::string& key) {
  if (const PickleValue* found = root.find(key)) return *found;
  std::string keys;
  for (const auto& [name, value] : root.entries) {
    if (keys.size() > 400) break;
    if (name->kind == Kind::kText) keys += (keys.empty() ? "" : ", ") + std::string(name->text.substr(0, 80));
  }
  throw Error(ErrorKind::kUnknownName, "torch file key", key, "it is missing; the file holds: " + keys);
}

float widen(ElementType type, const std::uint8_t* at) {
  switch (type) {
    case ElementType::kF32: return load_little<float>(at);
    case ElementType::kF64: return static_cast<float>(load_little<double>(at));
    case ElementType::kF16: return widen_f16(load_little<std::uint16_t>(at));
    default: return widen_bf16(load_little<std::uint16_t>(at));
  }
}

struct Matrix {
  std::int64_t rows = 0, width = 0;
  ElementType type = ElementType::kF32;
  std::vector<float> values;
};

Matrix read_matrix(const ZipArchive& archive, const std::string& folder, const PickleValue& root,
                   const std::string& key) {
  const PickleValue& value = require(root, key);
  if (value.kind != Kind::kTensor) {
    throw Error(ErrorKind::kBadDtype, key, name_of(value.kind), "it must be a tensor [rows, width]");
  }
  const PickledTensor& tensor = *value.tensor;
  if (tensor.sizes.size() != 2 || tensor.sizes[1] < 1) {
    throw Error(ErrorKind::kBadShape, key, std::to_string(tensor.sizes.size()) + " axes", "it must be [rows, width]");
  }
  const bool floating = tensor.type == ElementType::kF32 || tensor.type == ElementType::kF64 ||
                        tensor.type == ElementType::kF16 || tensor.type == ElementType::kBf16;
  if (!floating) throw Error(ErrorKind::kBadDtype, key, name_of(tensor.type), "embeddings are F32, BF16, F16 or F64");
  const std::size_t element = bytes_of(tensor.type);
  const ByteSpan storage = archive.read(folder + "data/" + std::string(tensor.storage_key));
  if (storage.size() / element < static_cast<std::uint64_t>(tensor.storage_elements)) {
    throw Error(ErrorKind::kTruncated, "storage of " + key, std::to_string(storage.size()) + " bytes",
                "its pickle says " + std::to_string(tensor.storage_elements) + " elements");
  }
  Matrix matrix{tensor.sizes[0], tensor.sizes[1], tensor.type, {}};
  matrix.values.resize(static_cast<std::size_t>(matrix.rows * matrix.width));
  float* into = matrix.values.data();
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    // The pickle machine has checked that every index lies inside storage_elements.
    const std::uint8_t* at =
        storage.data() + static_cast<std::size_t>(tensor.offset + row * tensor.strides[0]) * element;
    const std::size_t step = static_cast<std::size_t>(tensor.strides[1]) * element;
    for (std::int64_t column = 0; column < matrix.width; ++column) {
      *into++ = widen(tensor.type, at + static_cast<std::size_t>(column) * step);
    }
  }
  return matrix;
}

void read_texts(const PickleValue& pairs, Dataset& dataset) {
  if (pairs.kind != Kind::kList && pairs.kind != Kind::kTuple) {
    throw Error(ErrorKind::kBadDtype, "text_pairs", name_of(pairs.kind), "it must be a list of pairs of str");
  }
  for (std::size_t row = 0; row < pairs.items.size(); ++row) {
    const PickleValue& pair = *pairs.items[row];
    const bool fits = (pair.kind == Kind::kTuple || pair.kind == Kind::kList) && pair.items.size() == 2 &&
                      pair.items[0]->kind == Kind::kText && pair.items[1]->kind == Kind::kText;
    if (!fits) {
      throw Error(ErrorKind::kBadDtype, "text_pairs row " + std::to_string(row), name_of(pair.kind),
                  "every row is a pair (input, target) of str");
    }
    dataset.texts.add(pair.items[0]->text);
    dataset.texts.add(pair.items[1]->text);
  }
}

void require_rows(const std::string& key, std::int64_t rows, std::int64_t expected) {
  if (rows == expected) return;
  throw Error(ErrorKind::kDimensionMismatch, key, std::to_string(rows) + " rows",
              "text_pairs has " + std::to_string(expected));
}

}  // namespace

bool looks_like_torch_file(ByteSpan file) { return file.size() >= 4 && as_text(file.first(4)) == "PK\x03\x04"; }

Dataset parse_torch_file(ByteSpan file) {
  const ZipArchive archive(file);
  const std::string folder = find_folder(archive);
  if (archive.find(folder + "byteorder") != nullptr && as_text(archive.read(folder + "byteorder")) != "little") {
    throw Error(ErrorKind::kBadFile, "torch file byteorder", "not little", "save it on a little-endian machine");
  }
  const Pickle pickle(archive.read(folder + "data.pkl"));
  const PickleValue& root = pickle.root();
  if (root.kind != Kind::kDict) {
    throw Error(ErrorKind::kBadFile, "torch file", name_of(root.kind),
                "a dataset is a dict with text_pairs and embeddings");
  }
  Dataset dataset;
  dataset.format = "torch";
  read_texts(require(root, "text_pairs"), dataset);
  dataset.rows = static_cast<std::int64_t>(dataset.texts.size() / 2);
  Matrix inputs = read_matrix(archive, folder, root, "input_embeddings");
  Matrix targets = read_matrix(archive, folder, root, "target_embeddings");
  require_rows("input_embeddings", inputs.rows, dataset.rows);
  require_rows("target_embeddings", targets.rows, dataset.rows);
  if (inputs.width != targets.width) {
    throw Error(ErrorKind::kDimensionMismatch, "target_embeddings width", std::to_string(targets.width),
                "input_embeddings has " + std::to_string(inputs.width));
  }
  dataset.width = inputs.width;
  if (inputs.type == ElementType::kBf16 && targets.type == ElementType::kBf16) dataset.stored = StoredType::kBf16;
  dataset.inputs = std::move(inputs.values);
  dataset.targets = std::move(targets.values);
  if (const PickleValue* metadata = root.find("metadata"); metadata != nullptr && metadata->kind == Kind::kList) {
    if (metadata->items.size() != static_cast<std::size_t>(dataset.rows)) {
      dataset.remarks.push_back("metadata has " + std::to_string(metadata->items.size()) + " rows, texts have " +
                                std::to_string(dataset.rows));
    }
  }
  if (const PickleValue* info = root.find("generation_info")) dataset.generation_info = to_json(*info);
  return dataset;
}

}  // namespace twinbench

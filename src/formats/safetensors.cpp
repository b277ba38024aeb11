// Reading and writing safetensors.
#include "src/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "src/common/error.h"
#include "src/formats/json_text.h"

namespace twinbench {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLargestHeader = 100'000'000;
constexpr std::size_t kLargestRank = 64;
constexpr int kDeepestHeader = 8;
constexpr char kMetadata[] = "__metadata__";

struct TypeRow {
  ElementType type;
  const char* name;
  std::size_t bytes;
};
constexpr std::array<TypeRow, 10> kTypes = {{{ElementType::kF64, "F64", 8},
                                             {ElementType::kF32, "F32", 4},
                                             {ElementType::kF16, "F16", 2},
                                             {ElementType::kBf16, "BF16", 2},
                                             {ElementType::kI64, "I64", 8},
                                             {ElementType::kI32, "I32", 4},
                                             {ElementType::kI16, "I16", 2},
                                             {ElementType::kI8, "I8", 1},
                                             {ElementType::kU8, "U8", 1},
                                             {ElementType::kBool, "BOOL", 1}}};

const TypeRow& row_of(ElementType type) { return kTypes[static_cast<std::size_t>(type)]; }

[[noreturn]] void corrupt(const std::string& field, const std::string& value, const std::string& remedy) {
  throw Error(ErrorKind::kCorrupt, "safetensors " + field, value, remedy);
}

// Elements x bytes, or nothing where the product does not fit.
std::optional<std::uint64_t> byte_count(const std::vector<std::int64_t>& shape, ElementType type) {
  std::uint64_t count = bytes_of(type);
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    empty = empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count)) return std::nullopt;
  }
  return empty ? 0 : count;
}

Json parse_header(std::string_view text) {
  const std::string fault = json_fault(text, {.deepest = kDeepestHeader});
  if (!fault.empty()) corrupt("header", fault, "the header is JSON: an object of tensors");
  return Json::parse(text.begin(), text.end());
}

std::uint64_t non_negative(const Json& value, const std::string& field) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    corrupt(field, value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 40),
            "give a whole number, 0 or more");
  }
  return value.get<std::uint64_t>();
}

struct Placed {
  std::uint64_t begin = 0, end = 0;
  std::size_t tensor = 0;
};

TensorBytes parse_tensor(const std::string& name, const Json& entry, ByteSpan data, Placed& place) {
  const bool complete = entry.is_object() && entry.size() == 3 && entry.contains("dtype") && entry.contains("shape") &&
                        entry.contains("data_offsets");
  if (!complete || !entry["dtype"].is_string() || !entry["shape"].is_array() || !entry["data_offsets"].is_array() ||
      entry["data_offsets"].size() != 2) {
    corrupt("tensor " + name, "malformed entry", "it needs dtype, shape and two data_offsets, and nothing else");
  }
  TensorBytes tensor;
  tensor.name = name;
  const auto type = element_type(entry["dtype"].get<std::string>());
  if (!type) {
    throw Error(ErrorKind::kBadDtype, "safetensors tensor " + name, entry["dtype"].get<std::string>(),
                "F64, F32, F16, BF16, I64, I32, I16, I8, U8 and BOOL are read");
  }
  tensor.type = *type;
  if (entry["shape"].size() > kLargestRank) {
    corrupt("shape of " + name, std::to_string(entry["shape"].size()) + " axes", "at most 64 are read");
  }
  for (const Json& extent : entry["shape"]) {
    tensor.shape.push_back(static_cast<std::int64_t>(non_negative(extent, "shape of " + name)));
  }
  place.begin = non_negative(entry["data_offsets"][0], "data_offsets of " + name);
  place.end = non_negative(entry["data_offsets"][1], "data_offsets of " + name);
  if (place.begin > place.end || place.end > data.size()) {
    corrupt("data_offsets of " + name, std::to_string(place.begin) + ", " + std::to_string(place.end),
            "they must lie in order inside the " + std::to_string(data.size()) + " data bytes");
  }
  const auto expected = byte_count(tensor.shape, tensor.type);
  if (!expected || *expected != place.end - place.begin) {
    corrupt("tensor " + name, std::to_string(place.end - place.begin) + " bytes",
            "shape and dtype need another number");
  }
  tensor.bytes = data.subspan(place.begin, place.end - place.begin);
  return tensor;
}

void check_coverage(std::vector<Placed> places, const std::vector<TensorBytes>& tensors, std::uint64_t size) {
  std::sort(places.begin(), places.end(),
            [](const Placed& a, const Placed& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::uint64_t covered = 0;
  for (const Placed& place : places) {
    if (place.begin != covered) {
      corrupt("tensor " + tensors[place.tensor].name, "begins at " + std::to_string(place.begin),
              place.begin < covered ? "it overlaps another tensor" : "bytes before it belong to no tensor");
    }
    covered = place.end;
  }
  if (covered != size)
    corrupt("data", std::to_string(size - covered) + " bytes", "bytes at the end belong to no tensor");
}

}  // namespace

const char* name_of(ElementType type) { return row_of(type).name; }
std::size_t bytes_of(ElementType type) { return row_of(type).bytes; }

std::optional<ElementType> element_type(const std::string& name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

std::int64_t TensorBytes::elements() const { return static_cast<std::int64_t>(bytes.size() / bytes_of(type)); }

const TensorBytes* SafetensorsContents::find(const std::string& name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

const TensorBytes& SafetensorsContents::at(const std::string& name) const {
  if (const TensorBytes* found = find(name)) return *found;
  constexpr std::size_t kShown = 20;
  std::string names;
  for (std::size_t i = 0; i < std::min(kShown, tensors.size()); ++i) names += (i == 0 ? "" : ", ") + tensors[i].name;
  if (tensors.size() > kShown) names += " and " + std::to_string(tensors.size() - kShown) + " more";
  throw Error(ErrorKind::kUnknownName, "tensor", name, "the file holds: " + names);
}

SafetensorsContents parse_safetensors(ByteSpan file) {
  if (file.size() < 8) {
    throw Error(ErrorKind::kTruncated, "safetensors size", std::to_string(file.size()),
                "the header length alone has 8 bytes");
  }
  const auto length = load_little<std::uint64_t>(file.data());
  if (length < 2 || length > kLargestHeader) {
    throw Error(ErrorKind::kBadFile, "safetensors header length", std::to_string(length),
                "2 to 100000000 bytes are legal");
  }
  if (!inside(8, length, file.size())) {
    throw Error(ErrorKind::kTruncated, "safetensors size", std::to_string(file.size()),
                "the header alone has " + std::to_string(length) + " bytes");
  }
  const std::string_view text = as_text(file.subspan(8, length));
  if (text.front() != '{') {
    throw Error(ErrorKind::kBadFile, "safetensors header", "byte " + std::to_string(file[8]), "it begins with {");
  }
  const ByteSpan data = file.subspan(8 + length);
  const Json header = parse_header(text);
  SafetensorsContents contents;
  std::vector<Placed> places;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) {
      if (!entry.is_object()) corrupt(kMetadata, "not an object", "it maps strings to strings");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) corrupt(kMetadata, key, "its values must be strings");
        contents.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    Placed place;
    place.tensor = contents.tensors.size();
    contents.tensors.push_back(parse_tensor(name, entry, data, place));
    places.push_back(place);
  }
  check_coverage(std::move(places), contents.tensors, data.size());
  return contents;
}

void write_safetensors(const std::string& path, const std::vector<TensorBytes>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const TensorBytes*> order;
  std::set<std::string> names;
  for (const TensorBytes& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == kMetadata || !names.insert(tensor.name).second) {
      throw Error(ErrorKind::kBadArgument, "tensor name", tensor.name,
                  "names must be unique, not empty and not " + std::string(kMetadata));
    }
    const auto expected = byte_count(tensor.shape, tensor.type);
    if (!expected || *expected != tensor.bytes.size()) {
      throw Error(ErrorKind::kBadShape, "tensor " + tensor.name, std::to_string(tensor.bytes.size()) + " bytes",
                  "shape and type need another number");
    }
    order.push_back(&tensor);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return bytes_of(a->type) > bytes_of(b->type); });
  std::map<const TensorBytes*, std::uint64_t> offsets;
  std::uint64_t at = 0;
  for (const auto* tensor : order) {
    offsets[tensor] = at;
    at += tensor->bytes.size();
  }
  auto header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  for (const TensorBytes& tensor : tensors) {
    const std::uint64_t begin = offsets[&tensor];
    header[tensor.name] = {{"dtype", name_of(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, begin + tensor.bytes.size()}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::kBadArgument, "safetensors names and metadata", "invalid UTF-8", "use UTF-8 strings");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kLargestHeader) {
    throw Error(ErrorKind::kOutOfRange, "safetensors header length", std::to_string(text.size()),
                "at most 100000000 bytes");
  }
  std::array<std::uint8_t, 8> length{};
  store_little<std::uint64_t>(length.data(), text.size());
  AtomicFile file(path);
  file.write(length);
  file.write(as_bytes(text));
  for (const auto* tensor : order) file.write(tensor->bytes);
  file.commit();
}

}  // namespace twinbench

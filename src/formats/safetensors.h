// The safetensors format: an 8-byte header length, a JSON header, and the tensors' bytes. Reading trusts nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/formats/bytes.h"
#include "src/formats/file_io.h"

namespace twinbench {

enum class ElementType { kF64, kF32, kF16, kBf16, kI64, kI32, kI16, kI8, kU8, kBool };

const char* name_of(ElementType type);   // "F64", "F32", "F16", "BF16", "I64", ..., "BOOL": as the header spells it
std::size_t bytes_of(ElementType type);  // of one element
std::optional<ElementType> element_type(const std::string& name);

// A named tensor whose bytes lie elsewhere: row-major, little-endian, at any alignment.
struct TensorBytes {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<std::int64_t> shape;  // empty: a scalar
  ByteSpan bytes;

  std::int64_t elements() const;
};

// Header bytes at most 100,000,000 (the format's own limit).
struct SafetensorsContents {
  std::vector<TensorBytes> tensors;  // by name
  std::map<std::string, std::string> metadata;

  // Null where there is none of that name.
  const TensorBytes* find(const std::string& name) const;
  // Throws kUnknownName, listing the names there are.
  const TensorBytes& at(const std::string& name) const;
};

// Checks everything: header length, strict JSON without duplicate keys, known types, shape x type = bytes, tensors that
// cover the data without gap or overlap. Errors: kTruncated, kBadFile (not this format), kBadDtype (a type we do not
// read), kCorrupt. The views point into `file`.
SafetensorsContents parse_safetensors(ByteSpan file);

// A mapped file with its contents.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path) : mapping_(path), contents_(parse_safetensors(mapping_.bytes())) {}
  const SafetensorsContents& contents() const { return contents_; }

 private:
  MappedFile mapping_;
  SafetensorsContents contents_;
};

// Atomic. Names must be unique, not empty and not "__metadata__" (kBadArgument), bytes must fit shape and type
// (kBadShape). Wider elements are stored first, so that every tensor is aligned to its element.
void write_safetensors(const std::string& path, const std::vector<TensorBytes>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace twinbench

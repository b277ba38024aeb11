// A pickle machine that can build plain data and tensors, and nothing else: every opcode and every global is on an
// allow-list, and no global is ever called. Enough for what torch.save writes for a dataset.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/formats/bytes.h"
#include "src/formats/safetensors.h"

namespace twinbench {

// A tensor as the pickle describes it: a strided view of a storage that lies elsewhere in the archive.
struct PickledTensor {
  std::string_view storage_key;  // the storage is entry "data/<key>"
  ElementType type = ElementType::kF32;
  std::int64_t storage_elements = 0, offset = 0;  // in elements
  std::vector<std::int64_t> sizes, strides;       // in elements; checked to stay inside the storage
};

struct PickleValue {
  enum class Kind { kNone, kBool, kInteger, kFloat, kText, kList, kTuple, kDict, kGlobal, kStorage, kTensor };
  Kind kind = Kind::kNone;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view text;                  // UTF-8 as it stands; also a global's full name
  std::vector<const PickleValue*> items;  // list, tuple
  std::vector<std::pair<const PickleValue*, const PickleValue*>> entries;  // dict, in order of insertion
  std::shared_ptr<PickledTensor> tensor;  // tensor; storage: its key, type and elements

  // The last value under a text key of a dict; null where there is none, or this is no dict.
  const PickleValue* find(std::string_view key) const;
};

const char* name_of(PickleValue::Kind kind);  // "None", "bool", "int", "float", "str", "list", ...

// The values of one pickle. They point into the pickle's bytes, which must outlive it. A value may contain itself.
class Pickle {
 public:
  // Errors: kBadFile naming an opcode or global that is not allowed, kTruncated, kCorrupt (a stack or memo that does
  // not fit, a tensor that leaves its storage).
  explicit Pickle(ByteSpan bytes);
  const PickleValue& root() const { return *root_; }

 private:
  std::deque<PickleValue> values_;  // owns every value; their addresses stay
  const PickleValue* root_ = nullptr;
};

// JSON of a value, for the report: tensors, values nested deeper than 16 and what exceeds 10,000 values in all become a
// description.
std::string to_json(const PickleValue& value);

}  // namespace twinbench

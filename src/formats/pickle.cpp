// The machine: a stack of pointers to values, a memo, and the allowed opcodes.
#include "src/formats/pickle.h"

#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "src/common/error.h"
#include "src/formats/text_table.h"

namespace twinbench {
namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kMostValues = 4'000'000;

[[noreturn]] void corrupt(const std::string& field, const std::string& value) {
  throw Error(ErrorKind::kCorrupt, "pickle " + field, value, "save the file again with torch.save");
}

struct StorageRow {
  const char* name;
  ElementType type;
};
constexpr std::array<StorageRow, 10> kStorages = {{{"torch.FloatStorage", ElementType::kF32},
                                                   {"torch.BFloat16Storage", ElementType::kBf16},
                                                   {"torch.HalfStorage", ElementType::kF16},
                                                   {"torch.DoubleStorage", ElementType::kF64},
                                                   {"torch.LongStorage", ElementType::kI64},
                                                   {"torch.IntStorage", ElementType::kI32},
                                                   {"torch.ShortStorage", ElementType::kI16},
                                                   {"torch.CharStorage", ElementType::kI8},
                                                   {"torch.ByteStorage", ElementType::kU8},
                                                   {"torch.BoolStorage", ElementType::kBool}}};
constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor_v2", kOrderedDict = "collections.OrderedDict";

const StorageRow* find_storage(std::string_view name) {
  for (const StorageRow& row : kStorages) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

class Machine {
 public:
  Machine(ByteSpan bytes, std::deque<PickleValue>& values) : rest_(bytes), values_(values) {}

  const PickleValue* run() {
    for (;;) {
      const std::uint8_t opcode = take<std::uint8_t>();
      if (opcode == '.') {
        if (stack_.size() != 1 || !marks_.empty()) corrupt("stack", "more than the result at the end");
        return stack_.back();
      }
      step(opcode);
    }
  }

 private:
  void step(std::uint8_t opcode) {
    switch (opcode) {
      case 0x80: {  // PROTO
        const auto protocol = take<std::uint8_t>();
        if (protocol < 2 || protocol > 5) corrupt("protocol", std::to_string(protocol));
        return;
      }
      case 0x95: take<std::uint64_t>(); return;  // FRAME: a hint about buffering
      case '(':
        bounded(marks_.size());
        marks_.push_back(stack_.size());
        return;
      case 'N': push(Kind::kNone); return;
      case 0x88: push(Kind::kBool).boolean = true; return;
      case 0x89: push(Kind::kBool).boolean = false; return;
      case 'K': push(Kind::kInteger).integer = take<std::uint8_t>(); return;
      case 'M': push(Kind::kInteger).integer = take<std::uint16_t>(); return;
      case 'J': push(Kind::kInteger).integer = take<std::int32_t>(); return;
      case 0x8a: long_integer(); return;
      case 'G': push(Kind::kFloat).real = std::bit_cast<double>(__builtin_bswap64(take<std::uint64_t>())); return;
      case 'X': text(take<std::uint32_t>()); return;
      case 0x8c: text(take<std::uint8_t>()); return;
      case 0x8d: text(take<std::uint64_t>()); return;
      case '}': push(Kind::kDict); return;
      case ']': push(Kind::kList); return;
      case ')': push(Kind::kTuple); return;
      case 't': tuple(since_mark()); return;
      case 0x85: tuple(top(1)); return;
      case 0x86: tuple(top(2)); return;
      case 0x87: tuple(top(3)); return;
      case 'a': append(top(1)); return;
      case 'e': append(since_mark()); return;
      case 's': set_items(top(2)); return;
      case 'u': set_items(since_mark()); return;
      case 'q': memo_[take<std::uint8_t>()] = peek(); return;
      case 'r': memo_[take<std::uint32_t>()] = peek(); return;
      case 0x94:
        bounded(memo_.size());
        memo_[static_cast<std::uint32_t>(memo_.size())] = peek();
        return;
      case 'h': get(take<std::uint8_t>()); return;
      case 'j': get(take<std::uint32_t>()); return;
      case 'c': {  // GLOBAL: module and name, one a line
        const std::string_view module = line(), name = line();
        global(module, name);
        return;
      }
      case 0x93: {  // STACK_GLOBAL
        const auto parts = top(2);
        if (parts[0]->kind != Kind::kText || parts[1]->kind != Kind::kText) corrupt("global", "its name is no string");
        global(parts[0]->text, parts[1]->text);
        return;
      }
      case 'Q': persistent(); return;
      case 'R': reduce(); return;
      default:
        throw Error(ErrorKind::kBadFile, "pickle opcode", std::to_string(opcode),
                    "only plain data and tensors are read: save dict, list, tuple, str, numbers and tensors");
    }
  }

  // A byte of the file can ask for a hundred of memory.
  static void bounded(std::size_t count) {
    if (count >= kMostValues)
      throw Error(ErrorKind::kOutOfRange, "pickle", "more than " + std::to_string(kMostValues) + " values",
                  "split the data set: its texts and tensors are a few values a row");
  }

  template <typename T>
  T take() {
    if (rest_.size() < sizeof(T)) throw Error(ErrorKind::kTruncated, "pickle", "ends early", "copy the file again");
    const T value = load_little<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }

  std::string_view take_text(std::uint64_t length) {
    if (length > rest_.size()) throw Error(ErrorKind::kTruncated, "pickle", "ends early", "copy the file again");
    const auto bytes = rest_.first(static_cast<std::size_t>(length));
    rest_ = rest_.subspan(static_cast<std::size_t>(length));
    return as_text(bytes);
  }

  std::string_view line() {
    const std::size_t length = as_text(rest_).find('\n');
    if (length == std::string_view::npos) corrupt("global", "its name has no end");
    const std::string_view text = take_text(length);
    take<std::uint8_t>();
    return text;
  }

  PickleValue& push(Kind kind) {
    bounded(values_.size());
    PickleValue& value = values_.emplace_back();
    value.kind = kind;
    stack_.push_back(&value);
    return value;
  }

  void text(std::uint64_t length) {
    const std::string_view bytes = take_text(length);
    push(Kind::kText).text = bytes;
  }

  void long_integer() {
    const std::string_view bytes = take_text(take<std::uint8_t>());
    if (bytes.size() > 8) corrupt("integer", std::to_string(bytes.size()) + " bytes");
    std::uint64_t value = !bytes.empty() && (bytes.back() & 0x80) != 0 ? ~std::uint64_t{0} : 0;  // sign extension
    for (std::size_t i = bytes.size(); i-- > 0;) value = (value << 8) | static_cast<std::uint8_t>(bytes[i]);
    push(Kind::kInteger).integer = static_cast<std::int64_t>(value);
  }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  PickleValue* peek() const {
    if (stack_.size() <= floor()) corrupt("stack", "empty");
    return stack_.back();
  }

  std::vector<const PickleValue*> pop_from(std::size_t first) {
    std::vector<const PickleValue*> popped(stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
    stack_.resize(first);
    return popped;
  }

  std::vector<const PickleValue*> top(std::size_t count) {
    if (stack_.size() - floor() < count) corrupt("stack", "too short");
    return pop_from(stack_.size() - count);
  }

  std::vector<const PickleValue*> since_mark() {
    if (marks_.empty()) corrupt("stack", "no mark");
    const std::size_t first = marks_.back();
    marks_.pop_back();
    return pop_from(first);
  }

  void tuple(std::vector<const PickleValue*> items) { push(Kind::kTuple).items = std::move(items); }

  void append(const std::vector<const PickleValue*>& items) {
    PickleValue* list = peek();
    if (list->kind != Kind::kList) corrupt("list", std::string("a ") + name_of(list->kind) + " in its place");
    list->items.insert(list->items.end(), items.begin(), items.end());
  }

  void set_items(const std::vector<const PickleValue*>& items) {
    PickleValue* dict = peek();
    if (dict->kind != Kind::kDict || items.size() % 2 != 0) corrupt("dict", "no dict, or a key without a value");
    for (std::size_t i = 0; i < items.size(); i += 2) dict->entries.emplace_back(items[i], items[i + 1]);
  }

  void get(std::uint32_t key) {
    bounded(stack_.size());
    const auto found = memo_.find(key);
    if (found == memo_.end()) corrupt("memo", std::to_string(key));
    stack_.push_back(found->second);
  }

  void global(std::string_view module, std::string_view name) {
    std::string full = std::string(module) + "." + std::string(name);
    const StorageRow* storage = find_storage(full);
    PickleValue& value = push(Kind::kGlobal);
    if (storage != nullptr) {
      value.text = storage->name;
    } else if (full == kRebuildTensor || full == kOrderedDict) {
      value.text = full == kRebuildTensor ? kRebuildTensor : kOrderedDict;
    } else {
      throw Error(ErrorKind::kBadFile, "pickle global", std::move(full),
                  "only tensors, dict, list, tuple, str and numbers are read: save those");
    }
  }

  // ('storage', type, key, location, elements) -> a storage
  void persistent() {
    const PickleValue& id = *top(1)[0];
    const bool fits = id.kind == Kind::kTuple && id.items.size() == 5 && id.items[0]->kind == Kind::kText &&
                      id.items[0]->text == "storage" && id.items[1]->kind == Kind::kGlobal &&
                      id.items[2]->kind == Kind::kText && id.items[4]->kind == Kind::kInteger &&
                      id.items[4]->integer >= 0;
    const StorageRow* row = fits ? find_storage(id.items[1]->text) : nullptr;
    if (row == nullptr) corrupt("storage", "not a torch storage");
    PickleValue& storage = push(Kind::kStorage);
    storage.tensor = std::make_shared<PickledTensor>();
    storage.tensor->storage_key = id.items[2]->text;
    storage.tensor->type = row->type;
    storage.tensor->storage_elements = id.items[4]->integer;
  }

  void reduce() {
    const auto call = top(2);
    const PickleValue &function = *call[0], &arguments = *call[1];
    if (function.kind != Kind::kGlobal || arguments.kind != Kind::kTuple) corrupt("call", "not a function and a tuple");
    if (function.text == kOrderedDict && arguments.items.empty()) {
      push(Kind::kDict);
    } else if (function.text == kRebuildTensor) {
      rebuild_tensor(arguments.items);
    } else {
      throw Error(ErrorKind::kBadFile, "pickle call", std::string(function.text),
                  "only tensors and empty dicts are built");
    }
  }

  static std::vector<std::int64_t> extents(const PickleValue& tuple, const char* what) {
    if (tuple.kind != Kind::kTuple || tuple.items.size() > 64) corrupt("tensor", std::string(what) + " is no tuple");
    std::vector<std::int64_t> result;
    for (const PickleValue* item : tuple.items) {
      if (item->kind != Kind::kInteger || item->integer < 0) corrupt("tensor", std::string(what) + " is not 0 or more");
      result.push_back(item->integer);
    }
    return result;
  }

  // (storage, offset, sizes, strides, requires_grad, hooks[, metadata])
  void rebuild_tensor(const std::vector<const PickleValue*>& arguments) {
    if (arguments.size() < 4 || arguments[0]->kind != Kind::kStorage || arguments[1]->kind != Kind::kInteger ||
        arguments[1]->integer < 0) {
      corrupt("tensor", "malformed arguments");
    }
    PickledTensor tensor = *arguments[0]->tensor;
    tensor.offset = arguments[1]->integer;
    tensor.sizes = extents(*arguments[2], "size");
    tensor.strides = extents(*arguments[3], "stride");
    if (tensor.sizes.size() != tensor.strides.size()) corrupt("tensor", "sizes and strides of another rank");
    std::int64_t last = tensor.offset, elements = 1;
    bool overflow = false, empty = false;
    for (std::size_t axis = 0; axis < tensor.sizes.size(); ++axis) {
      empty = empty || tensor.sizes[axis] == 0;
      std::int64_t reach = 0;
      overflow |= __builtin_mul_overflow(tensor.sizes[axis] - 1, tensor.strides[axis], &reach);
      overflow |= __builtin_add_overflow(last, reach, &last);
      overflow |= __builtin_mul_overflow(elements, tensor.sizes[axis], &elements);
    }
    // An expanded tensor (stride 0) can have more elements than its storage: refused, or a small file could ask for any
    // amount of memory.
    if (!empty && (overflow || last >= tensor.storage_elements || elements > tensor.storage_elements)) {
      corrupt("tensor", "it leaves its storage of " + std::to_string(tensor.storage_elements) + " elements");
    }
    push(Kind::kTensor).tensor = std::make_shared<PickledTensor>(std::move(tensor));
  }

  ByteSpan rest_;
  std::deque<PickleValue>& values_;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, PickleValue*> memo_;
};

// `budget` bounds the whole: a few memoised lists of each other could otherwise describe any number of values.
nlohmann::ordered_json json_of(const PickleValue& value, int depth, int& budget) {
  const auto text = [](std::string_view raw) { return std::string(is_utf8(raw) ? raw : "(not UTF-8)"); };
  if (--budget < 0 || depth > 16) return "(left out)";
  switch (value.kind) {
    case Kind::kNone: return nullptr;
    case Kind::kBool: return value.boolean;
    case Kind::kInteger: return value.integer;
    case Kind::kFloat: return value.real;  // dumped as null where it is not finite
    case Kind::kText: return text(value.text);
    case Kind::kList:
    case Kind::kTuple: {
      auto list = nlohmann::ordered_json::array();
      for (const PickleValue* item : value.items) {
        list.push_back(json_of(*item, depth + 1, budget));
        if (budget < 0) break;
      }
      return list;
    }
    case Kind::kDict: {
      auto object = nlohmann::ordered_json::object();
      for (const auto& [key, item] : value.entries) {
        const std::string name =
            key->kind == Kind::kText ? text(key->text) : std::string("(") + name_of(key->kind) + ")";
        object[name] = json_of(*item, depth + 1, budget);
        if (budget < 0) break;
      }
      return object;
    }
    default: return std::string("(") + name_of(value.kind) + ")";
  }
}

}  // namespace

const char* name_of(PickleValue::Kind kind) {
  static const char* const kNames[] = {"None",  "bool", "int",    "float",   "str",   "list",
                                       "tuple", "dict", "global", "storage", "tensor"};
  return kNames[static_cast<int>(kind)];
}

const PickleValue* PickleValue::find(std::string_view key) const {
  if (kind != Kind::kDict) return nullptr;
  const PickleValue* found = nullptr;
  for (const auto& [name, value] : entries) {
    if (name->kind == Kind::kText && name->text == key) found = value;
  }
  return found;
}

Pickle::Pickle(ByteSpan bytes) { root_ = Machine(bytes, values_).run(); }

std::string to_json(const PickleValue& value) {
  int budget = 10'000;
  return json_of(value, 0, budget).dump();
}

}  // namespace twinbench

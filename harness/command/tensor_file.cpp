// Between at::Tensor and the safetensors library of src/formats.
#include "harness/command/tensor_file.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/common/error.h"
#include "src/formats/json_text.h"
#include "src/formats/safetensors.h"

namespace twinbench {
namespace {

const std::vector<std::pair<ElementType, at::ScalarType>>& types() {
  static const std::vector<std::pair<ElementType, at::ScalarType>> table = {
      {ElementType::kF64, at::kDouble},    {ElementType::kF32, at::kFloat}, {ElementType::kF16, at::kHalf},
      {ElementType::kBf16, at::kBFloat16}, {ElementType::kI64, at::kLong},  {ElementType::kI32, at::kInt},
      {ElementType::kI16, at::kShort},     {ElementType::kI8, at::kChar},   {ElementType::kU8, at::kByte},
      {ElementType::kBool, at::kBool}};
  return table;
}

ElementType element_type_of(const std::string& name, at::ScalarType type) {
  for (const auto& [element, scalar] : types())
    if (scalar == type) return element;
  throw Error(ErrorKind::kBadDtype, name, c10::toString(type),
              "safetensors files hold F64, F32, F16, BF16, I64, I32, I16, I8, U8 and BOOL");
}

constexpr const char* kComplexKey = "complex";
constexpr std::size_t kMostTensors = 4096;

std::vector<std::string> complex_names(const SafetensorsContents& contents) {
  const auto found = contents.metadata.find(kComplexKey);
  if (found == contents.metadata.end()) return {};
  try {
    const auto names = parse_json_text(found->second, "metadata", kComplexKey).get<std::vector<std::string>>();
    for (const auto& name : names)
      if (!contents.find(name))
        throw Error(ErrorKind::kCorrupt, "metadata complex", name, "it names a tensor that the file does not hold");
    return names;
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::kCorrupt, "metadata complex", found->second, "give a JSON list of tensor names");
  }
}

at::Tensor as_complex(const std::string& name, const at::Tensor& parts) {
  const bool real = parts.scalar_type() == at::kFloat || parts.scalar_type() == at::kDouble;
  if (!real || parts.dim() == 0 || parts.size(-1) != 2)
    throw Error(ErrorKind::kCorrupt, "tensor " + name, c10::str(parts.scalar_type(), " ", parts.sizes()),
                "the metadata calls it complex: store F32 or F64 with a last axis of 2");
  return at::view_as_complex(parts);
}

}  // namespace

void write_tensor_file(const std::string& path, const TensorFile& file) {
  std::vector<at::Tensor> kept;  // the bytes below point into these
  std::vector<TensorBytes> tensors;
  std::vector<std::string> complex;
  for (const auto& [prefix, values] :
       {std::pair<std::string, const NamedTensors*>{"input.", &file.inputs}, {"output.", &file.outputs}})
    for (const auto& [name, tensor] : *values) {
      kept.push_back(tensor.detach().to(at::kCPU).resolve_conj().contiguous());
      if (tensor.is_complex()) {
        kept.back() = at::view_as_real(kept.back());
        complex.push_back(prefix + name);
      }
      const auto& flat = kept.back();
      tensors.push_back({prefix + name, element_type_of(name, flat.scalar_type()), flat.sizes().vec(),
                         ByteSpan(static_cast<const unsigned char*>(flat.const_data_ptr()), flat.nbytes())});
    }
  auto metadata = file.metadata;
  if (!complex.empty()) metadata[kComplexKey] = nlohmann::json(complex).dump();
  write_safetensors(path, tensors, metadata);
}

TensorFile read_tensor_file(const std::string& path) {
  const SafetensorsFile opened(path);
  if (opened.contents().tensors.size() > kMostTensors)
    throw Error(ErrorKind::kOutOfRange, path, std::to_string(opened.contents().tensors.size()) + " tensors",
                "a cell has a few dozen: give a file that `twinbench dump` wrote");
  TensorFile file;
  file.metadata = opened.contents().metadata;
  const auto complex = complex_names(opened.contents());
  for (const auto& stored : opened.contents().tensors) {
    const auto dot = stored.name.find('.');
    const auto prefix = stored.name.substr(0, dot);
    if (prefix != "input" && prefix != "output")
      throw Error(ErrorKind::kUnknownName, "tensor", stored.name,
                  "names start with 'input.' or 'output.', as `twinbench dump` writes them");
    at::ScalarType scalar = at::kFloat;
    for (const auto& [element, type] : types())
      if (element == stored.type) scalar = type;
    auto tensor = at::empty(stored.shape, at::TensorOptions().dtype(scalar));
    if (!stored.bytes.empty()) std::memcpy(tensor.data_ptr(), stored.bytes.data(), stored.bytes.size());
    if (std::find(complex.begin(), complex.end(), stored.name) != complex.end())
      tensor = as_complex(stored.name, tensor);
    (prefix == "input" ? file.inputs : file.outputs).set(stored.name.substr(dot + 1), tensor);
  }
  return file;
}

}  // namespace twinbench

// Between at::Tensor and the safetensors library of src/formats.
#include "harness/command/tensor_file.h"

#include <ATen/ATen.h>

#include <cstring>
#include <utility>

#include "src/common/error.h"
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

}  // namespace

void write_tensor_file(const std::string& path, const TensorFile& file) {
  std::vector<at::Tensor> kept;  // the bytes below point into these
  std::vector<TensorBytes> tensors;
  for (const auto& [prefix, values] :
       {std::pair<std::string, const NamedTensors*>{"input.", &file.inputs}, {"output.", &file.outputs}})
    for (const auto& [name, tensor] : *values) {
      kept.push_back(tensor.detach().to(at::kCPU).contiguous());
      const auto& flat = kept.back();
      tensors.push_back({prefix + name, element_type_of(name, flat.scalar_type()), flat.sizes().vec(),
                         ByteSpan(static_cast<const unsigned char*>(flat.const_data_ptr()), flat.nbytes())});
    }
  write_safetensors(path, tensors, file.metadata);
}

TensorFile read_tensor_file(const std::string& path) {
  const SafetensorsFile opened(path);
  TensorFile file;
  file.metadata = opened.contents().metadata;
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
    (prefix == "input" ? file.inputs : file.outputs).set(stored.name.substr(dot + 1), tensor);
  }
  return file;
}

}  // namespace twinbench

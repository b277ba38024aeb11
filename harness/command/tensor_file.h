// Named tensors in a safetensors file: "input.<name>" and "output.<name>", with the cell and its sizes as metadata.
#pragma once

#include <map>
#include <string>

#include "src/named_tensors.h"

namespace twinbench {

struct TensorFile {
  NamedTensors inputs, outputs;
  std::map<std::string, std::string> metadata;  // "cell", "seed", "sizes" (JSON), "options" (JSON)
};

// The format has no complex numbers: such a tensor is stored with a last axis of 2, real and imaginary part, and named
// in the metadata: "complex": ["input.field", ...]. Reading makes it complex again.
// Atomic; throws Error(kInputOutput).
void write_tensor_file(const std::string& path, const TensorFile& file);
// Copies everything into fresh CPU tensors. Throws what parse_safetensors throws, kUnknownName on a tensor whose name
// starts with neither "input." nor "output.", and kCorrupt on "complex" metadata that does not fit the tensors.
TensorFile read_tensor_file(const std::string& path);

}  // namespace twinbench

// libFuzzer target: safetensors bytes, as tensors and as a dataset.
#include <cstdint>
#include <cstdlib>

#include "src/common/error.h"
#include "src/formats/convert.h"
#include "src/formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twinbench;
  const ByteSpan file(data, size);
  try {
    const SafetensorsContents contents = parse_safetensors(file);
    std::size_t covered = 0;
    std::uint8_t touched = 0;
    for (const TensorBytes& tensor : contents.tensors) {
      covered += tensor.bytes.size();
      for (const std::uint8_t byte : tensor.bytes) touched ^= byte;
    }
    if (covered > size || (touched != 0 && covered == 0)) std::abort();
    check_sizes(parse_dataset_safetensors(file));
  } catch (const Error&) {
  }
  return 0;
}

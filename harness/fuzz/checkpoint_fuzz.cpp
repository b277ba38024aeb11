// libFuzzer target: checkpoint bytes, as they are and as an index between a header and a footer that are right.
#include <cstdint>
#include <string>

#include "src/common/error.h"
#include "src/formats/checkpoint_file.h"

namespace {

using namespace twinbench;

constexpr std::uint64_t kLargestSection = 1 << 24;  // bytes: a file within its rights may hold many zeros

void read_everything(ByteSpan file) {
  try {
    const CheckpointView view(file);
    for (const CheckpointSection& section : view.sections()) {
      if (section.bytes > kLargestSection) continue;
      std::vector<std::uint8_t> into(section.bytes);
      view.read(section, into);
    }
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_everything({data, size});
  const std::string index(reinterpret_cast<const char*>(data), size);
  const auto header = checkpoint_header(1);
  const std::string payload = "sixteen bytes it";
  const auto footer = checkpoint_footer(header.size() + payload.size(), index);
  const std::string file = std::string(as_text(header)) + payload + index + std::string(as_text(footer));
  read_everything(as_bytes(file));
  return 0;
}

// libFuzzer target: JSON lines, and the sentence splitter on the same bytes.
#include <cstdint>

#include "src/common/error.h"
#include "src/formats/jsonl.h"
#include "src/formats/plain_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twinbench;
  const ByteSpan file(data, size);
  (void)split_paragraphs(as_text(file), {});
  try {
    check_sizes(parse_jsonl(file, 16));
  } catch (const Error&) {
  }
  return 0;
}

// libFuzzer target: torch.save files. The input is taken as a whole archive, and also as the pickle inside a sound one,
// because a random change to an archive seldom passes its checksums.
#include <cstdint>

#include "src/common/error.h"
#include "src/formats/pickle.h"
#include "src/formats/test_support.h"
#include "src/formats/torch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twinbench;
  const ByteSpan file(data, size);
  try {
    check_sizes(parse_torch_file(file));
  } catch (const Error&) {
  }
  try {
    (void)to_json(Pickle(file).root());
    const std::string archive = make_zip({{"a/data.pkl", std::string(as_text(file))},
                                          {"a/data/0", std::string(256, '\1')},
                                          {"a/data/1", std::string(64, '\2')}});
    check_sizes(parse_torch_file(as_bytes(archive)));
  } catch (const Error&) {
  }
  return 0;
}

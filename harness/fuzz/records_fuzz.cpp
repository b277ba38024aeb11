// libFuzzer target: the bytes as an earlier record.
#include <cstdint>
#include <cstdlib>

#include "harness/fuzz/as_file.h"
#include "harness/record/earlier_records.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twinbench;
  const AsFile file(data, size);
  for (const char* device : {"cpu", "cuda", "all"}) try {
      const auto found = session_from_records({file.path()}, device);
      if (!found["ceilings"].is_array()) std::abort();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal) std::abort();
    }
  try {
    (void)decided_twins({file.path()});
  } catch (const Error&) {
  }
  return 0;
}

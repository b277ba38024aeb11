// libFuzzer target: the bytes as an earlier record.
#include <cstdint>
#include <cstdlib>

#include "harness/fuzz/as_file.h"
#include "harness/fuzz/unless_refused.h"
#include "harness/record/earlier_records.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twinbench;
  const AsFile file(data, size);
  for (const char* device : {"cpu", "cuda", "all"})
    unless_refused([&] {
      const auto found = session_from_records({file.path()}, device);
      if (!found["ceilings"].is_array()) std::abort();
    });
  unless_refused([&] { (void)decided_twins({file.path()}); });
  return 0;
}

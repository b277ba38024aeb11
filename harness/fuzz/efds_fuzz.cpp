// libFuzzer target: EFDS bytes, as they are and with every checksum made right: a random change seldom passes those.
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "src/common/error.h"
#include "src/formats/efds.h"
#include "src/formats/efds_prepare.h"

namespace {

using namespace twinbench;

std::uint32_t checksum(ByteSpan bytes) { return static_cast<std::uint32_t>(::crc32_z(0, bytes.data(), bytes.size())); }

void read_everything(ByteSpan file) {
  try {
    const EfdsView view(file);
    for (std::int64_t text = 0; text < 2 * view.rows(); ++text) {
      try {
        (void)is_utf8(view.text(text));
      } catch (const Error&) {
        break;
      }
    }
    const RowValidity validity = verify_efds(view, 1);
    const Dataset dataset = read_efds(view);
    check_sizes(dataset);
    if (validity.rows != dataset.rows) std::abort();
  } catch (const Error&) {
  }
}

void forge_checksums(std::uint8_t* bytes, std::size_t size) {
  if (size < kEfdsHeaderBytes) return;
  store_little(bytes + 64, checksum({bytes, 64}));
  try {
    const EfdsView view(ByteSpan(bytes, size));
    for (int section = 0; section < kEfdsSections; ++section) {
      store_little(bytes + 68 + 4 * section, checksum(view.section(section)));
    }
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<std::uint8_t, decltype(&std::free)> aligned(
      static_cast<std::uint8_t*>(std::aligned_alloc(4096, (size / 4096 + 1) * 4096)), &std::free);
  std::memcpy(aligned.get(), data, size);
  read_everything({aligned.get(), size});
  forge_checksums(aligned.get(), size);
  read_everything({aligned.get(), size});
  return 0;
}

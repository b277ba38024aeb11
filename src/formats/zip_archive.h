// Zip archives as torch.save writes them: stored (uncompressed) entries, zip64 where needed. Reading trusts nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/formats/bytes.h"

namespace twinbench {

struct ZipEntry {
  std::string name;
  ByteSpan bytes;
  std::uint32_t crc = 0;  // as the directory states it; checked by ZipArchive::read
};

class ZipArchive {
 public:
  // `file` must outlive the archive. Errors: kTruncated (no end record), kBadFile (compressed or encrypted entries,
  // several disks), kCorrupt (sizes, offsets or names that contradict each other, overlapping entries).
  explicit ZipArchive(ByteSpan file);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  // Null where there is none of that name.
  const ZipEntry* find(const std::string& name) const;
  // The bytes of an entry; throws kUnknownName where there is none, kCorrupt where its checksum does not match.
  ByteSpan read(const std::string& name) const;

 private:
  std::vector<ZipEntry> entries_;  // by name
};

}  // namespace twinbench

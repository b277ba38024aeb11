// The EFDS file, version 1 (energy-flow specification C01): header, and where the sections lie.
//
//   0 magic "EFDS" | 4 u32 version | 8 u64 rows | 16 u32 width | 20 u32 type (0 fp32, 1 bf16)
//   24, 32, 40, 48 u64 offsets of inputs, targets, text index, text blob | 56 u64 file size
//   64 u32 x 5 CRC-32 of: header bytes 0-63, inputs, targets, index, blob | 84-127 zero
//
// Sections follow in that order, each at the next multiple of 4096 (the first at 4096), padding is zero, and the blob
// ends the file. Little-endian throughout.
#pragma once

#include <array>
#include <cstdint>

#include "src/formats/bytes.h"
#include "src/formats/dataset.h"

namespace twinbench {

inline constexpr std::uint64_t kEfdsHeaderBytes = 128, kEfdsAlignment = 4096;
inline constexpr std::uint32_t kEfdsVersion = 1;
inline constexpr std::uint64_t kEfdsLargestWidth = 1u << 20;  // elements of one embedding

enum EfdsSection { kEfdsInputs = 0, kEfdsTargets = 1, kEfdsIndex = 2, kEfdsBlob = 3, kEfdsSections = 4 };
const char* name_of_section(int section);  // "input section", "target section", "text index", "text blob"

struct EfdsHeader {
  std::uint64_t rows = 0;
  std::uint32_t width = 0;
  StoredType type = StoredType::kFp32;
  std::array<std::uint64_t, kEfdsSections> offset{};  // bytes from the start of the file
  std::array<std::uint64_t, kEfdsSections> length{};  // bytes, without padding; follows from the fields
  std::uint64_t file_size = 0;
  std::array<std::uint32_t, 1 + kEfdsSections> crc{};  // header, then the sections
};

// The one layout that a file of these sizes has. Throws kOutOfRange where it would exceed 2^63 bytes or the width is
// illegal.
EfdsHeader efds_layout(std::uint64_t rows, std::uint64_t width, StoredType type, std::uint64_t blob_bytes);

// Reads and checks the header against the bytes there are, in constant time. Errors: kBadFile (magic, version, type, or
// longer than its size field), kTruncated (shorter than its size field, or than a header), kCorrupt (header checksum,
// offsets that are not this layout, bytes 84-127 not zero).
EfdsHeader parse_efds_header(ByteSpan file);

// The 128 header bytes; fills in the header checksum.
std::array<std::uint8_t, kEfdsHeaderBytes> format_efds_header(EfdsHeader& header);

}  // namespace twinbench

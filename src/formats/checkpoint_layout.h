// The checkpoint file, version 1: what lies where. Sections are tensors; metadata is text by name.
//
//   0 magic "EFCK" | 4 u32 version | 8 u64 sequence number | 16 u32 CRC-32 of bytes 0-15 | 20-23 zero
//   24 the sections' bytes, one after the other, without gaps
//   then the index, JSON: {"metadata": {...}, "sections": [{"name", "type", "shape", "codec", "stored", "crc"}, ...]}
//   last 36 bytes: u64 offset of the index | u64 its bytes | u64 file size | u32 its CRC-32 | u32 CRC-32 of these 28 |
//   "KCFE"
//
// Written front to back, so that it needs no more memory than a section. The CRC-32 of a section, as eight hexadecimal
// digits, is of its bytes as stored; a compressed one has Zstandard's checksum of what went in as well. Little-endian
// throughout.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "src/formats/safetensors.h"

namespace twinbench {

inline constexpr std::uint32_t kCheckpointVersion = 1;
inline constexpr std::uint64_t kCheckpointHeaderBytes = 24, kCheckpointFooterBytes = 36;

enum class SectionCodec { kStored, kPlanes };  // as it is; byte planes, compressed (plane_codec.h)

struct CheckpointSection {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<std::int64_t> shape;
  SectionCodec codec = SectionCodec::kStored;
  std::uint64_t bytes = 0;               // of the tensor; follows from type and shape
  std::uint64_t offset = 0, stored = 0;  // where in the file, how many
  std::uint32_t crc = 0;                 // of what is stored
};

using CheckpointMetadata = std::map<std::string, std::string>;

struct CheckpointIndex {
  std::uint64_t sequence = 0;
  CheckpointMetadata metadata;
  std::vector<CheckpointSection> sections;
};

// The parts of a file around its sections' bytes.
std::array<std::uint8_t, kCheckpointHeaderBytes> checkpoint_header(std::uint64_t sequence);
// Throws kBadArgument for names or metadata that are no UTF-8.
std::string checkpoint_index_text(const CheckpointIndex& index);
std::array<std::uint8_t, kCheckpointFooterBytes> checkpoint_footer(std::uint64_t index_offset,
                                                                   const std::string& index_text);

// Checks all but the sections' own checksums. Errors name the part: kBadFile (another format or version), kTruncated
// (the end is missing), kCorrupt (a checksum, or parts that contradict each other).
CheckpointIndex parse_checkpoint(ByteSpan file);

// The sequence number alone; 0 for what begins with no whole header of this version.
std::uint64_t checkpoint_sequence(ByteSpan beginning);

}  // namespace twinbench

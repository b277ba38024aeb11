// Header arithmetic and checks of the EFDS format.
#include "src/formats/efds_layout.h"

#include <zlib.h>

#include <algorithm>
#include <string>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr char kMagic[4] = {'E', 'F', 'D', 'S'};
constexpr std::size_t kOffsetFields[kEfdsSections] = {24, 32, 40, 48};
constexpr std::size_t kCheckedBytes = 64;  // the part of the header that its own checksum covers

std::uint32_t checksum(const std::uint8_t* bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, bytes, kCheckedBytes));
}

std::uint64_t aligned(std::uint64_t offset) { return (offset + kEfdsAlignment - 1) / kEfdsAlignment * kEfdsAlignment; }

[[noreturn]] void corrupt(const std::string& field, const std::string& value, const std::string& remedy) {
  throw Error(ErrorKind::kCorrupt, field, value, remedy);
}

}  // namespace

const char* name_of_section(int section) {
  static const char* const kNames[] = {"input section", "target section", "text index", "text blob"};
  return section >= 0 && section < kEfdsSections ? kNames[section] : "header";
}

EfdsHeader efds_layout(std::uint64_t rows, std::uint64_t width, StoredType type, std::uint64_t blob_bytes) {
  // Every product and sum below stays under 2^63 once these limits hold, with room for the alignment.
  constexpr std::uint64_t kLargestSection = std::uint64_t{1} << 60;
  if (width < 1 || width > kEfdsLargestWidth) {
    throw Error(ErrorKind::kOutOfRange, "width", std::to_string(width), "embeddings have 1 to 1048576 elements");
  }
  if (rows > kLargestSection / (width * 4 + 16) || blob_bytes > kLargestSection) {
    throw Error(ErrorKind::kOutOfRange, "rows", std::to_string(rows), "a section may have at most 2^60 bytes");
  }
  EfdsHeader header;
  header.rows = rows;
  header.width = static_cast<std::uint32_t>(width);
  header.type = type;
  header.length = {rows * width * bytes_of(type), rows * width * bytes_of(type), (2 * rows + 1) * 8, blob_bytes};
  std::uint64_t at = kEfdsAlignment;
  for (int section = 0; section < kEfdsSections; ++section) {
    header.offset[section] = at;
    header.file_size = at + header.length[section];
    at = aligned(header.file_size);
  }
  return header;
}

EfdsHeader parse_efds_header(ByteSpan file) {
  const std::size_t magic_there = std::min(file.size(), sizeof(kMagic));
  if (!std::equal(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(magic_there), kMagic)) {
    throw Error(ErrorKind::kBadFile, "magic", "other bytes", "an EFDS file begins with the letters EFDS");
  }
  if (file.size() < kEfdsHeaderBytes) {
    throw Error(ErrorKind::kTruncated, "file size", std::to_string(file.size()), "the header alone has 128 bytes");
  }
  const std::uint8_t* at = file.data();
  const auto version = load_little<std::uint32_t>(at + 4);
  if (version != kEfdsVersion) {
    throw Error(ErrorKind::kBadFile, "version", std::to_string(version), "this build reads version 1");
  }
  const auto stored_crc = load_little<std::uint32_t>(at + kCheckedBytes);
  if (stored_crc != checksum(at)) corrupt("header", "checksum mismatch", "write the file again");

  const auto type = load_little<std::uint32_t>(at + 20);
  if (type > static_cast<std::uint32_t>(StoredType::kBf16)) {
    throw Error(ErrorKind::kBadFile, "type", std::to_string(type), "0 (fp32) and 1 (bf16) are known");
  }
  const auto size = load_little<std::uint64_t>(at + 56);
  if (file.size() < size) {
    throw Error(ErrorKind::kTruncated, "file size", std::to_string(file.size()),
                "the header says " + std::to_string(size) + " bytes");
  }
  if (file.size() > size) {
    throw Error(ErrorKind::kBadFile, "file size", std::to_string(file.size()),
                "the header says " + std::to_string(size) + " bytes");
  }
  const auto rows = load_little<std::uint64_t>(at + 8);
  const auto width = load_little<std::uint32_t>(at + 16);
  const auto blob_offset = load_little<std::uint64_t>(at + kOffsetFields[kEfdsBlob]);
  if (blob_offset > size) corrupt("text blob", "offset " + std::to_string(blob_offset), "it lies outside the file");
  EfdsHeader header;
  try {
    header = efds_layout(rows, width, static_cast<StoredType>(type), size - blob_offset);
  } catch (const Error& error) {
    corrupt(error.field(), error.value(), error.remedy());
  }
  for (int section = 0; section < kEfdsSections; ++section) {
    const auto offset = load_little<std::uint64_t>(at + kOffsetFields[section]);
    if (offset == header.offset[section]) continue;
    corrupt(name_of_section(section), "offset " + std::to_string(offset),
            "it must lie at " + std::to_string(header.offset[section]));
  }
  if (header.file_size != size) corrupt("file size", std::to_string(size), "the sections do not add up to it");
  for (int i = 0; i < 1 + kEfdsSections; ++i) header.crc[i] = load_little<std::uint32_t>(at + kCheckedBytes + 4 * i);
  if (!std::all_of(at + 84, at + kEfdsHeaderBytes, [](std::uint8_t byte) { return byte == 0; })) {
    corrupt("header", "reserved bytes", "bytes 84 to 127 must be zero");
  }
  return header;
}

std::array<std::uint8_t, kEfdsHeaderBytes> format_efds_header(EfdsHeader& header) {
  std::array<std::uint8_t, kEfdsHeaderBytes> bytes{};
  std::copy_n(kMagic, sizeof(kMagic), bytes.begin());
  store_little(&bytes[4], kEfdsVersion);
  store_little(&bytes[8], header.rows);
  store_little(&bytes[16], header.width);
  store_little(&bytes[20], static_cast<std::uint32_t>(header.type));
  for (int section = 0; section < kEfdsSections; ++section) {
    store_little(&bytes[kOffsetFields[section]], header.offset[section]);
  }
  store_little(&bytes[56], header.file_size);
  header.crc[0] = checksum(bytes.data());
  for (int i = 0; i < 1 + kEfdsSections; ++i) store_little(&bytes[kCheckedBytes + 4 * i], header.crc[i]);
  return bytes;
}

}  // namespace twinbench

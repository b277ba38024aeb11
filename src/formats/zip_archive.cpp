// The zip directory: end record, zip64 end record, central entries, local headers.
#include "src/formats/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034b50, kCentralSignature = 0x02014b50, kEndSignature = 0x06054b50,
                        kEnd64Signature = 0x06064b50, kLocator64Signature = 0x07064b50;
constexpr std::size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr std::uint16_t kZip64Extra = 1, kEncryptedFlag = 1;

[[noreturn]] void corrupt(const std::string& field, const std::string& value) {
  throw Error(ErrorKind::kCorrupt, "zip " + field, value, "save the file again");
}

struct Directory {
  std::uint64_t offset = 0, size = 0, count = 0;
};

Directory find_directory(ByteSpan file) {
  if (file.size() < kEndBytes) throw Error(ErrorKind::kTruncated, "zip size", std::to_string(file.size()), "too short");
  // The end record is followed by a comment of at most 65535 bytes.
  const std::size_t last = file.size() - kEndBytes, first = last > 0xFFFF ? last - 0xFFFF : 0;
  for (std::size_t at = last + 1; at-- > first;) {
    const std::uint8_t* end = file.data() + at;
    if (load_little<std::uint32_t>(end) != kEndSignature) continue;
    if (load_little<std::uint16_t>(end + 20) != file.size() - at - kEndBytes) continue;  // inside a comment
    if (load_little<std::uint16_t>(end + 4) != 0 || load_little<std::uint16_t>(end + 6) != 0) {
      throw Error(ErrorKind::kBadFile, "zip", "several disks", "give one whole archive");
    }
    Directory directory{load_little<std::uint32_t>(end + 16), load_little<std::uint32_t>(end + 12),
                        load_little<std::uint16_t>(end + 10)};
    if (at >= kLocator64Bytes && load_little<std::uint32_t>(end - kLocator64Bytes) == kLocator64Signature) {
      const auto end64 = load_little<std::uint64_t>(end - kLocator64Bytes + 8);
      if (!inside(end64, kEnd64Bytes, at) || load_little<std::uint32_t>(file.data() + end64) != kEnd64Signature) {
        corrupt("zip64 end record", "offset " + std::to_string(end64));
      }
      const std::uint8_t* record = file.data() + end64;
      directory = {load_little<std::uint64_t>(record + 48), load_little<std::uint64_t>(record + 40),
                   load_little<std::uint64_t>(record + 32)};
    }
    if (!inside(directory.offset, directory.size, at) || directory.count > directory.size / kCentralBytes) {
      corrupt("directory", "offset " + std::to_string(directory.offset));
    }
    return directory;
  }
  throw Error(ErrorKind::kTruncated, "zip", "no end record", "the file was cut off: copy it again");
}

// The 64-bit values that stand in the extra field for 32-bit ones that are all ones, in their fixed order.
class Zip64Extra {
 public:
  explicit Zip64Extra(ByteSpan extra) {
    while (extra.size() >= 4) {
      const auto id = load_little<std::uint16_t>(extra.data());
      const auto length = load_little<std::uint16_t>(extra.data() + 2);
      if (length > extra.size() - 4) corrupt("extra field", "length " + std::to_string(length));
      if (id == kZip64Extra) values_ = extra.subspan(4, length);
      extra = extra.subspan(4 + std::size_t{length});
    }
  }
  std::uint64_t widen(std::uint32_t value) {
    if (value != 0xFFFFFFFFu) return value;
    if (values_.size() < 8) corrupt("zip64 extra field", "too short");
    const auto wide = load_little<std::uint64_t>(values_.data());
    values_ = values_.subspan(8);
    return wide;
  }

 private:
  ByteSpan values_;
};

struct Range {
  std::uint64_t begin, end;
};

ZipEntry read_entry(ByteSpan file, std::uint64_t directory_offset, const std::uint8_t* central, std::size_t name_length,
                    std::size_t extra_length, Range& range) {
  ZipEntry entry;
  entry.name.assign(reinterpret_cast<const char*>(central) + kCentralBytes, name_length);
  entry.crc = load_little<std::uint32_t>(central + 16);
  const auto method = load_little<std::uint16_t>(central + 10);
  if (method != 0 || (load_little<std::uint16_t>(central + 8) & kEncryptedFlag) != 0) {
    throw Error(ErrorKind::kBadFile, "zip entry " + entry.name, "compressed or encrypted",
                "torch.save stores entries as they are");
  }
  Zip64Extra extra(ByteSpan(central + kCentralBytes + name_length, extra_length));
  const auto size = extra.widen(load_little<std::uint32_t>(central + 24));
  const auto stored_size = extra.widen(load_little<std::uint32_t>(central + 20));
  const auto local = extra.widen(load_little<std::uint32_t>(central + 42));
  if (size != stored_size) corrupt("entry " + entry.name, "two sizes");
  if (!inside(local, kLocalBytes, directory_offset)) corrupt("entry " + entry.name, "offset " + std::to_string(local));
  const std::uint8_t* header = file.data() + local;
  if (load_little<std::uint32_t>(header) != kLocalSignature) corrupt("entry " + entry.name, "no local header");
  const std::size_t local_name = load_little<std::uint16_t>(header + 26);
  const std::uint64_t begin = local + kLocalBytes + local_name + load_little<std::uint16_t>(header + 28);
  if (!inside(begin, size, directory_offset)) corrupt("entry " + entry.name, "size " + std::to_string(size));
  if (as_text(file.subspan(local + kLocalBytes, local_name)) != entry.name) corrupt("entry " + entry.name, "two names");
  entry.bytes = file.subspan(begin, size);
  range = {local, begin + size};
  return entry;
}

}  // namespace

ZipArchive::ZipArchive(ByteSpan file) {
  const Directory directory = find_directory(file);
  ByteSpan rest = file.subspan(directory.offset, directory.size);
  std::vector<Range> ranges;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    if (rest.size() < kCentralBytes || load_little<std::uint32_t>(rest.data()) != kCentralSignature) {
      corrupt("directory", "entry " + std::to_string(i));
    }
    const std::size_t name = load_little<std::uint16_t>(rest.data() + 28),
                      extra = load_little<std::uint16_t>(rest.data() + 30),
                      comment = load_little<std::uint16_t>(rest.data() + 32);
    if (name + extra + comment > rest.size() - kCentralBytes) corrupt("directory", "entry " + std::to_string(i));
    Range range{};
    entries_.push_back(read_entry(file, directory.offset, rest.data(), name, extra, range));
    ranges.push_back(range);
    rest = rest.subspan(kCentralBytes + name + extra + comment);
  }
  if (!rest.empty()) corrupt("directory", "bytes after the last entry");
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[i - 1].end) corrupt("entries", "they overlap");
  }
  std::sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    if (entries_[i].name == entries_[i - 1].name) corrupt("entry " + entries_[i].name, "there are two of it");
  }
}

const ZipEntry* ZipArchive::find(const std::string& name) const {
  const auto found =
      std::lower_bound(entries_.begin(), entries_.end(), name,
                       [](const ZipEntry& entry, const std::string& wanted) { return entry.name < wanted; });
  return found == entries_.end() || found->name != name ? nullptr : &*found;
}

ByteSpan ZipArchive::read(const std::string& name) const {
  const ZipEntry* entry = find(name);
  if (entry == nullptr) throw Error(ErrorKind::kUnknownName, "zip entry", name, "the archive holds no such entry");
  if (::crc32_z(0, entry->bytes.data(), entry->bytes.size()) != entry->crc) {
    corrupt("entry " + name, "checksum mismatch");
  }
  return entry->bytes;
}

}  // namespace twinbench

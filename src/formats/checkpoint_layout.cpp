// Header, index and footer of a checkpoint file, written and checked.
#include "src/formats/checkpoint_layout.h"

#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "src/common/error.h"
#include "src/formats/json_text.h"

namespace twinbench {
namespace {

using Json = nlohmann::json;

constexpr char kMagic[] = "EFCK", kEnd[] = "KCFE";
constexpr std::size_t kLargestRank = 64;
// Zstandard gives at most so many bytes for one, so that a small file that lies cannot ask for all memory.
constexpr std::uint64_t kMostForOne = 40000;

std::uint32_t crc_of(const std::uint8_t* bytes, std::size_t count) {
  return static_cast<std::uint32_t>(::crc32_z(0, bytes, count));
}

[[noreturn]] void corrupt(const std::string& part, const std::string& value) {
  throw Error(ErrorKind::kCorrupt, "checkpoint " + part, value, "restore an older checkpoint");
}

std::uint64_t number(const Json& entry, const char* key, const std::string& part) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_number_unsigned()) corrupt(part, std::string("no whole number ") + key);
  return found->get<std::uint64_t>();
}

std::string text(const Json& entry, const char* key, const std::string& part) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_string()) corrupt(part, std::string("no text ") + key);
  return found->get<std::string>();
}

// Eight digits, so that an index's length does not depend on what is in the sections.
std::string crc_text(std::uint32_t crc) {
  char digits[12];
  std::snprintf(digits, sizeof digits, "%08x", crc);
  return digits;
}

CheckpointSection parse_section(const Json& entry, std::uint64_t offset, std::uint64_t end) {
  const std::string name = text(entry, "name", "index"), part = "section " + name;
  CheckpointSection section;
  section.name = name;
  const auto type = element_type(text(entry, "type", part));
  if (!type) corrupt(part, "an unknown type");
  section.type = *type;
  const auto shape = entry.find("shape");
  if (shape == entry.end() || !shape->is_array() || shape->size() > kLargestRank) corrupt(part, "no shape");
  section.bytes = bytes_of(*type);
  for (const Json& extent : *shape) {
    if (!extent.is_number_unsigned() ||
        __builtin_mul_overflow(section.bytes, extent.get<std::uint64_t>(), &section.bytes))
      corrupt(part, "its shape");
    section.shape.push_back(static_cast<std::int64_t>(extent.get<std::uint64_t>()));
  }
  const std::string codec = text(entry, "codec", part);
  if (codec != "stored" && codec != "planes") corrupt(part, "codec " + codec.substr(0, 20));
  section.codec = codec == "stored" ? SectionCodec::kStored : SectionCodec::kPlanes;
  section.offset = offset;
  section.stored = number(entry, "stored", part);
  const std::string crc = text(entry, "crc", part);
  if (crc.size() != 8 || crc.find_first_not_of("0123456789abcdef") != std::string::npos) corrupt(part, "its checksum");
  section.crc = static_cast<std::uint32_t>(std::stoul(crc, nullptr, 16));
  if (section.stored > end - offset) corrupt(part, "it leaves the file");
  const bool fits = section.codec == SectionCodec::kStored
                        ? section.stored == section.bytes
                        : section.stored < section.bytes && section.bytes / kMostForOne <= section.stored;
  if (!fits) corrupt(part, std::to_string(section.stored) + " bytes for " + std::to_string(section.bytes));
  return section;
}

void parse_index(std::string_view from, std::uint64_t end, CheckpointIndex& index) {
  if (const std::string fault = json_fault(from, {.deepest = 8}); !fault.empty()) corrupt("index", fault);
  const Json json = Json::parse(from.begin(), from.end());
  const bool whole = json.is_object() && json.contains("metadata") && json["metadata"].is_object() &&
                     json.contains("sections") && json["sections"].is_array();
  if (!whole) corrupt("index", "it holds metadata and sections");
  for (const auto& [key, value] : json["metadata"].items()) {
    if (!value.is_string()) corrupt("index", "metadata that is no text: " + key);
    index.metadata[key] = value.get<std::string>();
  }
  std::uint64_t at = kCheckpointHeaderBytes;
  std::set<std::string> names;
  for (const Json& entry : json["sections"]) {
    if (!entry.is_object()) corrupt("index", "a section that is no object");
    index.sections.push_back(parse_section(entry, at, end));
    at += index.sections.back().stored;
    if (!names.insert(index.sections.back().name).second) corrupt("section " + index.sections.back().name, "twice");
  }
  if (at != end) corrupt("index", "bytes before it that belong to no section");
}

}  // namespace

std::array<std::uint8_t, kCheckpointHeaderBytes> checkpoint_header(std::uint64_t sequence) {
  std::array<std::uint8_t, kCheckpointHeaderBytes> bytes{};
  std::copy_n(kMagic, 4, bytes.begin());
  store_little(&bytes[4], kCheckpointVersion);
  store_little(&bytes[8], sequence);
  store_little(&bytes[16], crc_of(bytes.data(), 16));
  return bytes;
}

std::string checkpoint_index_text(const CheckpointIndex& index) {
  auto sections = nlohmann::ordered_json::array();
  for (const CheckpointSection& section : index.sections)
    sections.push_back({{"name", section.name},
                        {"type", name_of(section.type)},
                        {"shape", section.shape},
                        {"codec", section.codec == SectionCodec::kStored ? "stored" : "planes"},
                        {"stored", section.stored},
                        {"crc", crc_text(section.crc)}});
  try {
    return nlohmann::ordered_json{{"metadata", index.metadata}, {"sections", std::move(sections)}}.dump();
  } catch (const Json::exception&) {
    throw Error(ErrorKind::kBadArgument, "checkpoint names and metadata", "invalid UTF-8", "use UTF-8 texts");
  }
}

std::array<std::uint8_t, kCheckpointFooterBytes> checkpoint_footer(std::uint64_t index_offset,
                                                                   const std::string& index_text) {
  std::array<std::uint8_t, kCheckpointFooterBytes> bytes{};
  store_little<std::uint64_t>(&bytes[0], index_offset);
  store_little<std::uint64_t>(&bytes[8], index_text.size());
  store_little<std::uint64_t>(&bytes[16], index_offset + index_text.size() + kCheckpointFooterBytes);
  store_little(&bytes[24], crc_of(as_bytes(index_text).data(), index_text.size()));
  store_little(&bytes[28], crc_of(bytes.data(), 28));
  std::copy_n(kEnd, 4, &bytes[32]);
  return bytes;
}

CheckpointIndex parse_checkpoint(ByteSpan file) {
  const std::size_t magic_there = std::min<std::size_t>(file.size(), 4);
  if (!std::equal(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(magic_there), kMagic))
    throw Error(ErrorKind::kBadFile, "checkpoint magic", "other bytes", "a checkpoint begins with the letters EFCK");
  if (file.size() < kCheckpointHeaderBytes + kCheckpointFooterBytes)
    throw Error(ErrorKind::kTruncated, "checkpoint size", std::to_string(file.size()), "restore an older checkpoint");
  const std::uint8_t* const header = file.data();
  const bool sound = load_little<std::uint32_t>(header + 16) == crc_of(header, 16);
  if (const auto version = load_little<std::uint32_t>(header + 4); sound && version != kCheckpointVersion)
    throw Error(ErrorKind::kBadFile, "checkpoint version", std::to_string(version), "this build reads version 1");
  if (!sound || load_little<std::uint32_t>(header + 20) != 0) corrupt("header", "checksum mismatch");
  const std::uint8_t* const footer = file.data() + file.size() - kCheckpointFooterBytes;
  if (!std::equal(kEnd, kEnd + 4, footer + 32))
    throw Error(ErrorKind::kTruncated, "checkpoint end", "missing after " + std::to_string(file.size()) + " bytes",
                "restore an older checkpoint");
  if (load_little<std::uint32_t>(footer + 28) != crc_of(footer, 28)) corrupt("footer", "checksum mismatch");
  const auto offset = load_little<std::uint64_t>(footer), bytes = load_little<std::uint64_t>(footer + 8),
             size = load_little<std::uint64_t>(footer + 16);
  if (size != file.size() || offset < kCheckpointHeaderBytes || offset > size - kCheckpointFooterBytes ||
      bytes != size - kCheckpointFooterBytes - offset)
    corrupt("footer", "sizes that contradict the file's " + std::to_string(file.size()) + " bytes");
  const ByteSpan index_bytes = file.subspan(offset, bytes);
  if (load_little<std::uint32_t>(footer + 24) != crc_of(index_bytes.data(), index_bytes.size()))
    corrupt("index", "checksum mismatch");
  CheckpointIndex index;
  index.sequence = load_little<std::uint64_t>(header + 8);
  parse_index(as_text(index_bytes), offset, index);
  return index;
}

std::uint64_t checkpoint_sequence(ByteSpan beginning) {
  if (beginning.size() < kCheckpointHeaderBytes || !std::equal(kMagic, kMagic + 4, beginning.begin())) return 0;
  const std::uint8_t* const header = beginning.data();
  if (load_little<std::uint32_t>(header + 16) != crc_of(header, 16)) return 0;
  return load_little<std::uint32_t>(header + 4) == kCheckpointVersion ? load_little<std::uint64_t>(header + 8) : 0;
}

}  // namespace twinbench

// Writing, reading and converting checkpoint files.
#include "src/formats/checkpoint_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr char kSequence[] = "sequence";

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(extent);
  return text + "]";
}

void check_section(const TensorBytes& tensor, std::set<std::string>& names) {
  if (tensor.name.empty() || !names.insert(tensor.name).second)
    throw Error(ErrorKind::kBadArgument, "checkpoint section", tensor.name, "names are unique and not empty");
  std::uint64_t bytes = bytes_of(tensor.type);
  for (const std::int64_t extent : tensor.shape) bytes *= static_cast<std::uint64_t>(extent);
  if (bytes != tensor.bytes.size())
    throw Error(ErrorKind::kBadShape, "checkpoint section " + tensor.name,
                std::to_string(tensor.bytes.size()) + " bytes",
                "shape " + shape_text(tensor.shape) + " and type need " + std::to_string(bytes));
}

}  // namespace

const CheckpointSection& CheckpointView::section(const std::string& name) const {
  const auto found = std::find_if(index_.sections.begin(), index_.sections.end(),
                                  [&](const CheckpointSection& section) { return section.name == name; });
  if (found == index_.sections.end())
    throw Error(ErrorKind::kUnknownName, "checkpoint section", name, "the file does not hold it: another model's?");
  return *found;
}

void CheckpointView::read(const CheckpointSection& section, std::span<std::uint8_t> into) const {
  const std::string what = "checkpoint section " + section.name;
  if (into.size() != section.bytes)
    throw Error(ErrorKind::kBadShape, what, std::to_string(into.size()) + " bytes",
                "it has " + std::to_string(section.bytes));
  const ByteSpan stored = file_.subspan(section.offset, section.stored);
  if (static_cast<std::uint32_t>(::crc32_z(0, stored.data(), stored.size())) != section.crc)
    throw Error(ErrorKind::kCorrupt, what, "checksum mismatch", "restore an older checkpoint");
  if (section.codec == SectionCodec::kPlanes) return decompress_planes(stored, bytes_of(section.type), into, what);
  if (!stored.empty()) std::memcpy(into.data(), stored.data(), stored.size());
}

void CheckpointView::read(const std::string& name, ElementType type, const std::vector<std::int64_t>& shape,
                          std::span<std::uint8_t> into) const {
  const CheckpointSection& found = section(name);
  if (found.type != type || found.shape != shape)
    throw Error(ErrorKind::kDimensionMismatch, "checkpoint section " + name,
                std::string(name_of(found.type)) + " " + shape_text(found.shape),
                std::string("the run has ") + name_of(type) + " " + shape_text(shape) +
                    ": restore it with the configuration that saved it");
  read(found, into);
}

std::uint64_t write_checkpoint(const std::string& path, const std::vector<TensorBytes>& sections,
                               const CheckpointMetadata& metadata, std::uint64_t sequence, SectionCodec codec,
                               PlaneCompressor& compressor) {
  std::set<std::string> names;
  for (const TensorBytes& tensor : sections) check_section(tensor, names);
  CheckpointIndex index{sequence, metadata, {}};
  AtomicFile file(path);
  file.write(checkpoint_header(sequence));
  for (const TensorBytes& tensor : sections) {
    CheckpointSection section{tensor.name, tensor.type, tensor.shape, codec, tensor.bytes.size(), file.written(), 0, 0};
    ByteSpan stored = tensor.bytes;
    if (codec == SectionCodec::kPlanes) stored = compressor.compress(tensor.bytes, bytes_of(tensor.type));
    if (codec == SectionCodec::kPlanes && stored.empty()) {
      section.codec = SectionCodec::kStored;
      stored = tensor.bytes;
    }
    section.stored = stored.size();
    section.crc = static_cast<std::uint32_t>(::crc32_z(0, stored.data(), stored.size()));
    file.write(stored);
    index.sections.push_back(std::move(section));
  }
  const std::uint64_t offset = file.written();
  const std::string text = checkpoint_index_text(index);
  file.write(as_bytes(text));
  file.write(checkpoint_footer(offset, text));
  file.commit();
  return file.written();
}

void checkpoint_to_safetensors(const CheckpointView& from, const std::string& path) {
  std::vector<std::vector<std::uint8_t>> bytes;
  std::vector<TensorBytes> tensors;
  for (const CheckpointSection& section : from.sections()) {
    bytes.emplace_back(section.bytes);
    from.read(section, bytes.back());
    tensors.push_back({section.name, section.type, section.shape, bytes.back()});
  }
  CheckpointMetadata metadata = from.metadata();
  metadata[kSequence] = std::to_string(from.sequence());
  write_safetensors(path, tensors, metadata);
}

void checkpoint_from_safetensors(const std::string& from, const std::string& path, SectionCodec codec) {
  const SafetensorsFile file(from);
  CheckpointMetadata metadata = file.contents().metadata;
  const std::string said = metadata.contains(kSequence) ? metadata.extract(kSequence).mapped() : "0";
  const bool whole = !said.empty() && said.size() < 20 && said.find_first_not_of("0123456789") == std::string::npos;
  if (!whole)
    throw Error(ErrorKind::kCorrupt, "safetensors metadata sequence", said, "a whole number, or leave it out");
  PlaneCompressor compressor;
  write_checkpoint(path, file.contents().tensors, metadata, std::stoull(said), codec, compressor);
}

}  // namespace twinbench

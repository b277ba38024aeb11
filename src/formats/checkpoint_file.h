// Checkpoint files, whole: written beside the old one and renamed over it, read section by section.
#pragma once

#include <span>

#include "src/formats/checkpoint_layout.h"
#include "src/formats/file_io.h"
#include "src/formats/plane_codec.h"

namespace twinbench {

// A view of a checkpoint's bytes, which must outlive it. The constructor throws what parse_checkpoint throws.
class CheckpointView {
 public:
  explicit CheckpointView(ByteSpan file) : file_(file), index_(parse_checkpoint(file)) {}

  std::uint64_t sequence() const { return index_.sequence; }
  const CheckpointMetadata& metadata() const { return index_.metadata; }
  const std::vector<CheckpointSection>& sections() const { return index_.sections; }
  // Throws kUnknownName, naming the section.
  const CheckpointSection& section(const std::string& name) const;

  // The section's bytes. Throws kCorrupt, naming it, where its checksum says so.
  void read(const CheckpointSection& section, std::span<std::uint8_t> into) const;
  // The same of a tensor that has its place already: throws kDimensionMismatch, naming it, where the file holds another
  // shape or type.
  void read(const std::string& name, ElementType type, const std::vector<std::int64_t>& shape,
            std::span<std::uint8_t> into) const;

 private:
  ByteSpan file_;
  CheckpointIndex index_;
};

// A mapped checkpoint.
class CheckpointFile {
 public:
  explicit CheckpointFile(const std::string& path) : mapping_(path), view_(mapping_.bytes()) {}
  const CheckpointView& view() const { return view_; }

 private:
  MappedFile mapping_;
  CheckpointView view_;
};

// Atomic and durable (AtomicFile). A section that compression does not make smaller is stored as it is: the file is
// never larger than the tensors, header, index and footer. Names are unique (kBadArgument), bytes fit shape and type
// (kBadShape). Returns the file's bytes.
std::uint64_t write_checkpoint(const std::string& path, const std::vector<TensorBytes>& sections,
                               const CheckpointMetadata& metadata, std::uint64_t sequence, SectionCodec codec,
                               PlaneCompressor& compressor);

// The same content as safetensors, which Python reads; the sequence number is metadata "sequence". And back.
void checkpoint_to_safetensors(const CheckpointView& from, const std::string& path);
void checkpoint_from_safetensors(const std::string& from, const std::string& path, SectionCodec codec);

}  // namespace twinbench

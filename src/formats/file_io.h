// Files: read-only mappings, and writes that either appear whole under their name or not at all.
#pragma once

#include <optional>
#include <string>

#include "src/formats/bytes.h"
#include "src/formats/temporary_paths.h"

namespace twinbench {

// A regular file mapped read-only. Movable. Throws kInputOutput where the system refuses, or the path is no regular
// file; kBadFile for one that is nearly all hole. Where another process makes it shorter, reading beyond its end ends
// the program by an error that names it (mapping_guard.h).
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  ByteSpan bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  void release() noexcept;

  std::string path_;
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  int guard_ = -1;
};

// Writes to a temporary file in the target's directory; commit() makes it durable (fsync) and renames it into place.
// Without commit() the destructor removes it, so that a failed write leaves nothing behind. A link is followed, so that
// it stays one, and the file's permissions are kept.
class AtomicFile {
 public:
  // Throws kInputOutput, also where the path is there and no regular file: a device, FIFO or folder is not replaced.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(ByteSpan bytes);             // throws kInputOutput; retries short writes and EINTR
  void write_zeros(std::uint64_t count);  // padding
  void commit();                          // throws kInputOutput; the target is untouched if it does
  std::uint64_t written() const { return written_; }

 private:
  std::string path_, target_, temporary_;  // target_: the path, or where the link there leads
  std::optional<TemporaryPath> registered_;
  int descriptor_ = -1;
  std::uint64_t written_ = 0;
};

// Replaces the file at `path` by these bytes, atomically.
void write_file(const std::string& path, ByteSpan bytes);

// Makes the folders above a file, where they are missing; says nothing where it cannot.
void make_directory_of(const std::string& path);

// Throws kInputOutput where write_file would fail now: for results that take hours, before they are measured. Leaves
// nothing behind.
void check_writable(const std::string& path);

// A new private directory under the system's temporary one; removed with its contents by the destructor.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  std::optional<TemporaryPath> registered_;
};

}  // namespace twinbench

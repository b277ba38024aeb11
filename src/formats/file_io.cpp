// POSIX side of mappings and atomic writes.
#include "src/formats/file_io.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "src/common/error.h"
#include "src/formats/mapping_guard.h"

namespace twinbench {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& action) {
  throw Error(ErrorKind::kInputOutput, path, std::strerror(errno), action);
}

std::string directory_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

// Where a path leads: itself, or what the link there names, which need not be there yet.
std::string end_of_links(const std::string& path) {
  std::filesystem::path end = path;
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(end, error); ++links) {
    if (links == 40) throw Error(ErrorKind::kInputOutput, path, "links that lead nowhere", "give a regular file");
    const std::filesystem::path next = std::filesystem::read_symlink(end, error);
    if (error) throw Error(ErrorKind::kInputOutput, path, error.message(), "give a regular file");
    end = next.is_absolute() ? next : end.parent_path() / next;
  }
  return end.string();
}

// Beside the file; a name may be as long as the system takes, and the part that is told again is cut.
std::string temporary_beside(const std::string& target) {
  const std::filesystem::path path(target);
  return directory_of(target) + "/" + path.filename().string().substr(0, 100) + ".partial-XXXXXX";
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail(path, "give a file that exists and may be read");
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw Error(ErrorKind::kInputOutput, path, "not a regular file", "give a regular file");
  }
  // A terabyte of zeros takes no room on the disk, and hours to read.
  constexpr off_t kLarge = off_t{1} << 30, kBlock = 512;
  if (status.st_size > kLarge && status.st_blocks * kBlock < status.st_size / 100) {
    ::close(descriptor);
    throw Error(
        ErrorKind::kBadFile, path,
        std::to_string(status.st_size) + " bytes, " + std::to_string(status.st_blocks * kBlock) + " of them stored",
        "it is nearly all hole: give a file that was written whole");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  void* mapping = nullptr;
  if (size_ > 0) mapping = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
  const int error = errno;
  ::close(descriptor);
  if (mapping == MAP_FAILED) {
    errno = error;
    fail(path, "mapping the file was refused");
  }
  data_ = static_cast<const std::uint8_t*>(mapping);
  guard_ = guard_mapping(data_, size_, path);
}

MappedFile::~MappedFile() { release(); }

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      guard_(std::exchange(other.guard_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    release();
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    guard_ = std::exchange(other.guard_, -1);
  }
  return *this;
}

void MappedFile::release() noexcept {
  forget_mapping(std::exchange(guard_, -1));
  if (data_ != nullptr) ::munmap(const_cast<std::uint8_t*>(data_), size_);
  data_ = nullptr;
  size_ = 0;
}

AtomicFile::AtomicFile(const std::string& path)
    : path_(path), target_(end_of_links(path)), temporary_(temporary_beside(target_)) {
  struct stat status {};
  const bool there = ::stat(target_.c_str(), &status) == 0;
  if (there && !S_ISREG(status.st_mode))
    throw Error(ErrorKind::kInputOutput, path, "not a regular file", "give a regular file, or a name that is free");
  const SignalsWait until_it_is_registered;
  descriptor_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (descriptor_ < 0) fail(path, "give a path in a directory that exists and may be written");
  registered_.emplace(temporary_, false);
  ::fchmod(descriptor_, there ? status.st_mode & 07777 : 0644);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail(path_, "writing failed: free space or give another path");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    written_ += static_cast<std::uint64_t>(count);
  }
}

void AtomicFile::write_zeros(std::uint64_t count) {
  static constexpr std::uint8_t kZeros[4096] = {};
  while (count > 0) {
    const std::uint64_t step = std::min<std::uint64_t>(count, sizeof(kZeros));
    write({kZeros, static_cast<std::size_t>(step)});
    count -= step;
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail(path_, "flushing to the disk failed");
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0 || ::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    errno = error;
    fail(path_, "moving the finished file into place failed");
  }
  // The rename is durable only when the directory is; a file system that cannot sync directories is no error.
  const int directory = ::open(directory_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    ::fsync(directory);
    ::close(directory);
  }
}

void make_directory_of(const std::string& path) {
  std::error_code ignored;  // what fails here fails with a better message where the file is written
  std::filesystem::create_directories(directory_of(path), ignored);
}

void write_file(const std::string& path, ByteSpan bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void check_writable(const std::string& path) {
  struct stat found {};  // the file is made under another, shorter name first
  if (::stat(path.c_str(), &found) != 0 && errno == ENAMETOOLONG) fail(path, "give a shorter name");
  static constexpr std::uint8_t kPage[4096] = {};
  AtomicFile(path).write({kPage, sizeof(kPage)});  // a full disk lets a file be made, and not be filled
}

TemporaryDirectory::TemporaryDirectory() {
  const char* base = std::getenv("TMPDIR");
  path_ = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/twinbench-XXXXXX";
  const SignalsWait until_it_is_registered;
  if (::mkdtemp(path_.data()) == nullptr) fail(path_, "give TMPDIR a directory that may be written");
  registered_.emplace(path_, true);
}

TemporaryDirectory::~TemporaryDirectory() {
  // Not std::filesystem::remove_all: libtorch.so of the wheel exports one of another standard library, which crashes.
  const auto remove_entry = [](const char* path, const struct stat*, int, struct FTW*) { return ::remove(path); };
  ::nftw(path_.c_str(), remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

}  // namespace twinbench

// The texts of a dataset: one UTF-8 blob and 2 * rows + 1 offsets, in the order input 0, target 0, input 1, ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace twinbench {

class TextTable {
 public:
  TextTable() : offsets_{0} {}
  // Takes offsets that a reader has already checked: monotone and inside the blob.
  TextTable(std::string blob, std::vector<std::uint64_t> offsets)
      : blob_(std::move(blob)), offsets_(std::move(offsets)) {}

  void add(std::string_view text) {
    blob_.append(text);
    offsets_.push_back(blob_.size());
  }

  std::size_t size() const { return offsets_.size() - 1; }  // texts, not rows
  std::string_view operator[](std::size_t text) const {
    return std::string_view(blob_).substr(offsets_[text], offsets_[text + 1] - offsets_[text]);
  }
  const std::string& blob() const { return blob_; }
  const std::vector<std::uint64_t>& offsets() const { return offsets_; }

 private:
  std::string blob_;
  std::vector<std::uint64_t> offsets_;
};

// True where `text` is well-formed UTF-8 (no surrogates, no overlong forms, nothing above U+10FFFF).
bool is_utf8(std::string_view text);

}  // namespace twinbench

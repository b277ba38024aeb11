// Dataset files in the EFDS format: reading without copying, and writing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/formats/dataset.h"
#include "src/formats/efds_layout.h"
#include "src/formats/file_io.h"

namespace twinbench {

// A view of EFDS bytes, which must outlive it and lie at an address that is a multiple of 8 (a mapping does). Opening
// checks the header only, in constant time; section checksums and rows are the prepare pass's (efds_prepare.h).
class EfdsView {
 public:
  EfdsView() = default;
  explicit EfdsView(ByteSpan file) : file_(file), header_(parse_efds_header(file)) {}

  const EfdsHeader& header() const { return header_; }
  std::int64_t rows() const { return static_cast<std::int64_t>(header_.rows); }
  std::int64_t width() const { return header_.width; }
  StoredType type() const { return header_.type; }
  ByteSpan file() const { return file_; }
  ByteSpan section(int section) const { return file_.subspan(header_.offset[section], header_.length[section]); }
  // [rows, width] of fp32 in place; null for a bf16 file, whose rows read_*_row widens.
  const float* inputs() const { return floats(kEfdsInputs); }
  const float* targets() const { return floats(kEfdsTargets); }
  // Copies a row as fp32 (`into` holds width elements). `row` must be in range.
  void read_row(int section, std::int64_t row, float* into) const;
  // Text 2 * row (input) or 2 * row + 1 (target). Throws kCorrupt where its offsets are not ordered or leave the blob.
  std::string_view text(std::int64_t index) const;

 private:
  const float* floats(int section) const {
    if (header_.type != StoredType::kFp32) return nullptr;
    return reinterpret_cast<const float*>(file_.data() + header_.offset[section]);
  }

  ByteSpan file_;
  EfdsHeader header_;
};

// A mapped EFDS file. Throws what MappedFile and parse_efds_header throw, and kDimensionMismatch where the width is not
// the expected one.
class EfdsFile {
 public:
  explicit EfdsFile(const std::string& path, std::optional<std::int64_t> expected_width = std::nullopt);
  const EfdsView& view() const { return view_; }
  const std::string& path() const { return mapping_.path(); }

 private:
  MappedFile mapping_;
  EfdsView view_;
};

// The whole file as a dataset; checks the checksums and the index (verify_efds), keeps invalid rows.
Dataset read_efds(const EfdsView& view);

// Writes `dataset` with embeddings stored as dataset.stored says (bf16: nearest, ties to even). Atomic; the same
// dataset gives the same bytes. Throws kOutOfRange for a width of 0, kInputOutput.
void write_efds(const std::string& path, const Dataset& dataset);

}  // namespace twinbench

// The offline prepare pass over an EFDS file: section checksums, text index, padding, and which rows are valid. Its
// result lies beside the file, so that a loader can start without touching the embeddings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/formats/efds.h"

namespace twinbench {

// One bit a row, in file order: bit (row % 8) of byte (row / 8) is 1 where the row is valid; the spare bits are 0.
struct RowValidity {
  std::int64_t rows = 0;
  std::vector<std::uint8_t> bitmap;
  std::vector<std::int64_t> dropped;  // the invalid rows, ascending

  bool valid(std::int64_t row) const { return (bitmap[static_cast<std::size_t>(row / 8)] >> (row % 8)) & 1; }
};

// Reads every byte once, on `threads` threads (at least 1): row validity and section checksums in one pass. Throws
// kCorrupt naming the section whose checksum, offsets or padding are wrong. The result does not depend on `threads`.
RowValidity verify_efds(const EfdsView& view, int threads = 1);

// "<file>.valid"
std::string validity_path(const std::string& efds_path);

// verify_efds, and the result written beside the file (atomic).
RowValidity prepare_efds(const EfdsFile& file, int threads = 1);

// Reads the result of an earlier prepare; runs it where there is none, or where it belongs to other contents. A damaged
// one is made again. *prepared tells whether the pass ran (may be null).
RowValidity load_validity(const EfdsFile& file, int threads = 1, bool* prepared = nullptr);

}  // namespace twinbench

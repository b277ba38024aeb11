// A sentence-pair dataset in memory, whatever format it came from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/formats/text_table.h"

namespace twinbench {

// How embeddings lie in a file. In memory they are always fp32.
enum class StoredType : std::uint32_t { kFp32 = 0, kBf16 = 1 };

inline std::uint64_t bytes_of(StoredType type) { return type == StoredType::kFp32 ? 4 : 2; }
const char* name_of(StoredType type);  // "fp32", "bf16"

struct Dataset {
  std::int64_t rows = 0, width = 0;
  std::vector<float> inputs, targets;  // [rows, width], row-major
  TextTable texts;                     // 2 * rows texts: input 0, target 0, input 1, ...
  StoredType stored = StoredType::kFp32;
  std::string format;                // "efds", "torch", "safetensors", "jsonl", "plain text"
  std::string generation_info;       // JSON, from the torch files that have it; not kept by other formats
  std::vector<std::string> remarks;  // what the reader noticed and did not reject

  const float* input(std::int64_t row) const { return inputs.data() + row * width; }
  const float* target(std::int64_t row) const { return targets.data() + row * width; }
  std::string_view input_text(std::int64_t row) const { return texts[static_cast<std::size_t>(2 * row)]; }
  std::string_view target_text(std::int64_t row) const { return texts[static_cast<std::size_t>(2 * row + 1)]; }
};

// Throws kInternal where the parts of a dataset disagree on its size.
void check_sizes(const Dataset& dataset);

// Throws kNonFinite, naming the first row and field that hold NaN or Inf.
void check_finite(const Dataset& dataset);

// Texts that are empty or not valid UTF-8. Both are legal: kept as raw bytes and reported.
struct TextReport {
  std::uint64_t empty = 0, invalid_utf8 = 0;
};
TextReport report_texts(const Dataset& dataset);

// Every row of both sides becomes x / max(||x||_2, 1e-12), the norm in fp64.
void normalise_rows(Dataset& dataset);

// Rows that validation (row_check.h) refuses, ascending.
std::vector<std::int64_t> invalid_rows(const Dataset& dataset);

// Rows that pass validation, in file order. Returns how many were dropped.
std::int64_t drop_invalid_rows(Dataset& dataset);

}  // namespace twinbench

// What `twinbench data make / info / convert` does: any dataset file in, a dataset file out, a description.
#pragma once

#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "src/formats/bytes.h"
#include "src/formats/dataset.h"
#include "src/formats/plain_text.h"

namespace twinbench {

// Any dataset file: the format is told from the contents (EFDS magic, zip, safetensors header, a JSON object on the
// first line, else plain text), never from the name. Non-finite rows are kept as they are. Remarks tell what is
// unusual. Errors: those of the readers, plus kBadFile for bytes that are no known format, and for plain text under the
// name of another one (.pt, .efds, ...).
Dataset read_any(const std::string& path, const TextOptions& options = {});

struct ConvertOptions {
  bool normalise = false;                      // every embedding to norm 1
  bool drop_invalid = false;                   // rows that validation refuses are left out instead of raising
  std::optional<StoredType> stored;            // of an EFDS output; otherwise as the source has it
  std::optional<std::int64_t> expected_width;  // kDimensionMismatch where the source has another
  TextOptions text;                            // for sources without embeddings
};

// How many pairs a file holds, how wide their embeddings are, and which rows validation refuses. The file is read and
// checked whole. Errors: those of read_any.
struct DatasetExtent {
  std::int64_t rows = 0, width = 0;
  std::vector<std::int64_t> invalid = {};  // ascending

  std::int64_t valid() const { return rows - std::ssize(invalid); }
};
DatasetExtent extent_of(const std::string& path);

// Writes by extension: .efds, .safetensors, .jsonl; kBadArgument for another. Atomic.
void write_any(const std::string& path, const Dataset& dataset);

// Reads, checks (kNonFinite names the row, unless drop_invalid), normalises, writes. Returns what was written.
Dataset convert_dataset(const std::string& input, const std::string& output, const ConvertOptions& options = {});

// An EFDS file from plain text or dataset files (one dataset file, or any number of text files; none: the default
// corpus), with the row-validity file beside it. Returns what was written.
Dataset make_dataset(const std::vector<std::string>& inputs, const std::string& output,
                     const ConvertOptions& options = {});

struct DatasetDescription {
  std::string text;  // for people, lines
  std::string json;  // one object: path, format, rows, width, stored, bytes, texts, dropped rows, norms, remarks, ...
};

// Reads and checks the whole file. For EFDS also the section table with its checksums.
DatasetDescription describe_dataset(const std::string& path, const TextOptions& options = {});

// The tensors of a dataset as safetensors names them: input_embeddings, target_embeddings [rows, width] F32,
// text_bytes [n] U8, text_offsets [2 rows + 1] I64.
Dataset parse_dataset_safetensors(ByteSpan file);
void write_dataset_safetensors(const std::string& path, const Dataset& dataset);

}  // namespace twinbench

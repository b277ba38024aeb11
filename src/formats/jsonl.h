// Datasets as JSON lines: one object a row.
//   {"input": "text", "target": "text", "input_embedding": [numbers], "target_embedding": [numbers], "metadata": any}
// The embeddings may be absent from all rows (then they are hashed, hashed_embedding.h); metadata is ignored.
#pragma once

#include <string>

#include "src/formats/bytes.h"
#include "src/formats/dataset.h"

namespace twinbench {

// Blank lines are skipped. Errors name the line: kCorrupt (no JSON object, repeated or missing key, wrong type, invalid
// UTF-8), kBadArgument (a key that is not listed above), kDimensionMismatch, kNonFinite (a number beyond fp32),
// kOutOfRange (hashed_width, or rows without embeddings that would need more than 2^31 elements).
Dataset parse_jsonl(ByteSpan file, std::int64_t hashed_width = 768);

// Numbers are written with the fewest digits that give the same fp32 back. Atomic. Throws kCorrupt, naming the row, for
// a text that is not UTF-8: JSON cannot hold it.
void write_jsonl(const std::string& path, const Dataset& dataset);

}  // namespace twinbench

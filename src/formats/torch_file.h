// The pipelines' own dataset files, as torch.save writes them: a dict with text_pairs (list of 2-tuples of str),
// input_embeddings and target_embeddings [N, E] (fp32, bf16, fp16 or fp64; any strides), and, read where present,
// metadata (one value a row) and generation_info.
#pragma once

#include "src/formats/bytes.h"
#include "src/formats/dataset.h"

namespace twinbench {

// Needs neither Python nor LibTorch and runs no code from the file. Errors: those of ZipArchive and Pickle,
// kUnknownName for a missing key, kBadShape, kBadDtype, kDimensionMismatch where the parts differ in rows or width,
// kTruncated for a short storage.
Dataset parse_torch_file(ByteSpan file);

// True for the first bytes of a zip archive, the container of torch.save since 1.6.
bool looks_like_torch_file(ByteSpan file);

}  // namespace twinbench

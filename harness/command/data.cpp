// The command-line side of src/formats.
#include "harness/command/data.h"

#include <iostream>

#include "harness/command/command.h"
#include "src/common/one_line.h"
#include "src/formats/checkpoint_describe.h"
#include "src/formats/convert.h"

namespace twinbench {

int data_command(const DataOptions& options) {
  const std::string& first = options.inputs.front();
  if (options.action == "info" && is_checkpoint(first)) {
    std::cout << describe_checkpoint(first, options.as_json);
    return kExitPass;
  }
  if (options.action == "convert" && (is_checkpoint(first) || is_checkpoint(options.out))) {
    convert_checkpoint(first, options.out);
    std::cout << one_line(options.out) << ": the tensors and metadata of " << one_line(first) << "\n";
    return kExitPass;
  }
  if (options.action == "info") {
    const auto description = describe_dataset(first);
    std::cout << (options.as_json ? description.json + "\n" : description.text);
    return kExitPass;
  }
  ConvertOptions convert;
  convert.normalise = options.normalise;
  convert.drop_invalid = options.drop_invalid;
  if (!options.stored.empty()) convert.stored = options.stored == "bf16" ? StoredType::kBf16 : StoredType::kFp32;
  if (options.width > 0) convert.expected_width = options.width;
  if (!options.words.empty()) {
    convert.text.smallest_words = options.words[0];
    convert.text.largest_words = options.words[1];
  }
  if (options.rows >= 0) convert.text.largest_rows = options.rows;
  const auto written = options.action == "make" ? make_dataset(options.inputs, options.out, convert)
                                                : convert_dataset(first, options.out, convert);
  std::cout << one_line(options.out) << ": " << written.rows << " pairs, embeddings " << written.width << " wide\n";
  for (const auto& remark : written.remarks) std::cout << "  " << remark << '\n';
  return kExitPass;
}

}  // namespace twinbench

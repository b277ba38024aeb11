// Recognising, converting and making dataset files.
#include "src/formats/convert.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "src/common/error.h"
#include "src/formats/efds.h"
#include "src/formats/efds_prepare.h"
#include "src/formats/jsonl.h"
#include "src/formats/safetensors.h"
#include "src/formats/torch_file.h"

namespace twinbench {
namespace {

enum class Format { kEfds, kTorch, kSafetensors, kJsonLines, kPlainText };

std::string extension_of(const std::string& path) { return std::filesystem::path(path).extension().string(); }

bool looks_like_safetensors(ByteSpan file) {
  if (file.size() < 10) return false;
  const auto length = load_little<std::uint64_t>(file.data());
  return length >= 2 && length <= 100'000'000 && file[8] == '{';
}

// Nearly anything reads as plain text: of a spoilt file only the name tells what it was to be.
void require_text_name(const std::string& path) {
  static const std::map<std::string, std::string> kinds = {{".efds", "EFDS"},
                                                           {".pt", "a torch.save file"},
                                                           {".pth", "a torch.save file"},
                                                           {".safetensors", "safetensors"},
                                                           {".jsonl", "JSON lines"}};
  if (const auto kind = kinds.find(extension_of(path)); kind != kinds.end())
    throw Error(ErrorKind::kBadFile, path, "plain text",
                "by its name it is " + kind->second + ": give that, or name a text .txt");
}

Format recognise(const std::string& path, ByteSpan file) {
  const std::string_view text = as_text(file);
  if (text.starts_with("EFDS")) return Format::kEfds;
  if (looks_like_torch_file(file)) return Format::kTorch;
  if (looks_like_safetensors(file)) return Format::kSafetensors;
  if (text.starts_with("\x80\x02")) {
    throw Error(ErrorKind::kBadFile, path, "a bare pickle, or torch.save's format before 1.6",
                "save it again with a current torch.save");
  }
  const std::string_view marked = without_byte_order_mark(text);
  const std::size_t first = marked.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && marked[first] == '{') return Format::kJsonLines;
  if (file.empty() || text.substr(0, 4096).find('\0') != std::string_view::npos) {
    throw Error(ErrorKind::kBadFile, path, file.empty() ? "empty" : "unknown bytes",
                "give EFDS, a torch.save file, safetensors, JSON lines or plain text");
  }
  require_text_name(path);
  return Format::kPlainText;
}

Dataset read_format(Format format, const std::string& path, ByteSpan file, const TextOptions& options) {
  switch (format) {
    case Format::kEfds: return read_efds(EfdsView(file));
    case Format::kTorch: return parse_torch_file(file);
    case Format::kSafetensors: return parse_dataset_safetensors(file);
    case Format::kJsonLines: return parse_jsonl(file, options.width);
    case Format::kPlainText: break;
  }
  return read_plain_text({path}, options);
}

void remark_texts(Dataset& dataset) {
  const TextReport report = report_texts(dataset);
  if (report.invalid_utf8 > 0) {
    dataset.remarks.push_back(std::to_string(report.invalid_utf8) + " texts are not valid UTF-8: kept as raw bytes");
  }
  if (report.empty > 0) dataset.remarks.push_back(std::to_string(report.empty) + " texts are empty (legal)");
}

void require_width(const std::string& source, const Dataset& dataset, const ConvertOptions& options) {
  if (!options.expected_width || *options.expected_width == dataset.width) return;
  throw Error(ErrorKind::kDimensionMismatch, "width of " + source, std::to_string(dataset.width),
              "expected " + std::to_string(*options.expected_width));
}

void apply(const ConvertOptions& options, Dataset& dataset) {
  if (options.drop_invalid) {
    drop_invalid_rows(dataset);
  } else {
    check_finite(dataset);
  }
  if (options.normalise) {
    normalise_rows(dataset);
    if (const std::size_t none = invalid_rows(dataset).size(); none > 0)
      dataset.remarks.push_back("rows with an embedding of zeros or nearly so, which has no direction: " +
                                std::to_string(none) + "; these embeddings stay, and training leaves such rows out");
  }
  if (options.stored) dataset.stored = *options.stored;
}

void require_known_extension(const std::string& path) {
  const std::string extension = extension_of(path);
  if (extension == ".efds" || extension == ".safetensors" || extension == ".jsonl") return;
  throw Error(ErrorKind::kBadArgument, "output", path, "name it .efds, .safetensors or .jsonl");
}

}  // namespace

Dataset read_any(const std::string& path, const TextOptions& options) {
  const MappedFile file(path);
  Dataset dataset = read_format(recognise(path, file.bytes()), path, file.bytes(), options);
  remark_texts(dataset);
  return dataset;
}

DatasetExtent extent_of(const std::string& path) {
  const MappedFile file(path);
  if (recognise(path, file.bytes()) == Format::kEfds) {
    const EfdsView view(file.bytes());
    return {view.rows(), view.width(), verify_efds(view).dropped};
  }
  const Dataset dataset = read_any(path);
  return {dataset.rows, dataset.width, invalid_rows(dataset)};
}

void write_any(const std::string& path, const Dataset& dataset) {
  require_known_extension(path);
  const std::string extension = extension_of(path);
  if (extension == ".efds") write_efds(path, dataset);
  if (extension == ".safetensors") write_dataset_safetensors(path, dataset);
  if (extension == ".jsonl") write_jsonl(path, dataset);
}

Dataset convert_dataset(const std::string& input, const std::string& output, const ConvertOptions& options) {
  require_known_extension(output);
  Dataset dataset = read_any(input, options.text);
  require_width(input, dataset, options);
  apply(options, dataset);
  write_any(output, dataset);
  return dataset;
}

Dataset make_dataset(const std::vector<std::string>& inputs, const std::string& output, const ConvertOptions& options) {
  if (extension_of(output) != ".efds") throw Error(ErrorKind::kBadArgument, "output", output, "name it .efds");
  Dataset dataset;
  if (inputs.size() == 1) {
    dataset = read_any(inputs.front(), options.text);
  } else {
    for (const std::string& input : inputs)
      if (recognise(input, MappedFile(input).bytes()) != Format::kPlainText)
        throw Error(ErrorKind::kBadArgument, "inputs", input,
                    "only texts are taken together: give a dataset file alone");
    dataset = read_plain_text(inputs.empty() ? default_corpus() : inputs, options.text);
    remark_texts(dataset);
  }
  require_width(inputs.empty() ? "the default corpus" : inputs.front(), dataset, options);
  apply(options, dataset);
  write_efds(output, dataset);
  prepare_efds(EfdsFile(output));
  return dataset;
}

}  // namespace twinbench

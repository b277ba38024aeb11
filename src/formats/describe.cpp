// The description of a dataset file, for people and as JSON.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "src/common/one_line.h"
#include "src/formats/convert.h"
#include "src/formats/efds.h"
#include "src/formats/json_text.h"
#include "src/formats/row_check.h"

namespace twinbench {
namespace {

using Json = nlohmann::ordered_json;

struct NormRange {
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
};

NormRange norms(const std::vector<float>& values, std::int64_t rows, std::int64_t width) {
  NormRange range;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double norm = std::sqrt(row_square_sum(values.data() + row * width, width));
    if (!std::isfinite(norm)) continue;  // such rows are listed as invalid
    range.smallest = std::min(range.smallest, norm);
    range.largest = std::max(range.largest, norm);
  }
  return range;
}

Json describe_norms(const NormRange& range) {
  if (!std::isfinite(range.smallest)) return nullptr;
  return Json{{"smallest", range.smallest}, {"largest", range.largest}};
}

Json describe_sections(ByteSpan file) {
  const EfdsView view(file);
  const EfdsHeader& header = view.header();
  auto sections = Json::array();
  for (int section = 0; section < kEfdsSections; ++section) {
    char crc[9];
    std::snprintf(crc, sizeof(crc), "%08x", header.crc[1 + section]);
    sections.push_back({{"name", name_of_section(section)},
                        {"offset", header.offset[section]},
                        {"bytes", header.length[section]},
                        {"crc32", crc}});
  }
  return sections;
}

std::string printable(std::string_view text) { return is_utf8(text) ? std::string(text) : std::string("(not UTF-8)"); }

}  // namespace

DatasetDescription describe_dataset(const std::string& path, const TextOptions& options) {
  const Dataset dataset = read_any(path, options);
  const MappedFile file(path);
  const Json dropped = invalid_rows(dataset);
  const TextReport texts = report_texts(dataset);
  Json json;
  json["path"] = printable(path);
  json["format"] = dataset.format;
  json["bytes"] = file.bytes().size();
  json["rows"] = dataset.rows;
  json["width"] = dataset.width;
  json["stored"] = name_of(dataset.stored);
  json["embedding_bytes"] = static_cast<std::uint64_t>(2 * dataset.rows * dataset.width) * bytes_of(dataset.stored);
  json["text_bytes"] = dataset.texts.blob().size();
  json["empty_texts"] = texts.empty;
  json["invalid_utf8_texts"] = texts.invalid_utf8;
  json["invalid_rows"] = dropped.size();
  json["invalid_row_numbers"] = dropped;
  json["input_norms"] = describe_norms(norms(dataset.inputs, dataset.rows, dataset.width));
  json["target_norms"] = describe_norms(norms(dataset.targets, dataset.rows, dataset.width));
  if (dataset.format == "efds") json["sections"] = describe_sections(file.bytes());
  json["generation_info"] = dataset.generation_info.empty() ? Json(nullptr) : Json::parse(dataset.generation_info);
  json["remarks"] = dataset.remarks;
  if (dataset.rows > 0) {
    json["first_row"] = {{"input", printable(dataset.input_text(0))}, {"target", printable(dataset.target_text(0))}};
  }

  std::ostringstream text;
  text << one_line(path) << ": " << dataset.format << ", " << dataset.rows << " rows of width " << dataset.width << " ("
       << name_of(dataset.stored) << "), " << file.bytes().size() << " bytes, of which " << json["embedding_bytes"]
       << " are embeddings\n";
  if (dataset.rows > 0) {
    const Json& row = json["first_row"];
    text << "norms: input " << json["input_norms"] << ", target " << json["target_norms"] << "\n"
         << "first row: " << one_line(row["input"].dump()) << " -> " << one_line(row["target"].dump()) << "\n";
  }
  if (!dropped.empty()) text << dropped.size() << " invalid rows, which training leaves out: " << dropped << "\n";
  if (json.contains("sections")) {
    for (const Json& section : json["sections"]) {
      text << section["name"].get<std::string>() << ": " << section["bytes"] << " bytes at " << section["offset"]
           << ", CRC-32 " << section["crc32"].get<std::string>() << "\n";
    }
  }
  for (const std::string& remark : dataset.remarks) text << "remark: " << remark << "\n";
  return {text.str(), printed_json(json, 2)};
}

}  // namespace twinbench

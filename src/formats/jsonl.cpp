// Reading and writing JSON lines.
#include "src/formats/jsonl.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "src/common/error.h"
#include "src/formats/file_io.h"
#include "src/formats/hashed_embedding.h"

namespace twinbench {
namespace {

using Json = nlohmann::json;

constexpr char kInput[] = "input", kTarget[] = "target", kInputEmbedding[] = "input_embedding",
               kTargetEmbedding[] = "target_embedding", kMetadata[] = "metadata";
constexpr std::int64_t kLargestHashed = std::int64_t{1} << 31;

class Line {
 public:
  Line(std::int64_t number, std::string_view text) : number_(number) {
    std::set<std::string> keys;
    const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (event != Json::parse_event_t::key || depth != 1) return true;
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.insert(key).second) corrupt(key, "the key appears twice");
      return true;
    };
    try {
      object_ = Json::parse(text.begin(), text.end(), check);
    } catch (const Json::exception& error) {
      corrupt("JSON", error.what());
    }
    if (!object_.is_object()) corrupt("JSON", "not an object");
    for (const auto& [key, value] : object_.items()) {
      if (key == kInput || key == kTarget || key == kInputEmbedding || key == kTargetEmbedding || key == kMetadata)
        continue;
      throw Error(ErrorKind::kBadArgument, field("key"), key,
                  "known are input, target, input_embedding, target_embedding and metadata");
    }
  }

  const std::string& text(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_string()) corrupt(key, "missing, or not a string");
    return found->get_ref<const std::string&>();
  }

  bool has_embeddings() const {
    const bool input = object_.contains(kInputEmbedding), target = object_.contains(kTargetEmbedding);
    if (input != target) corrupt(input ? kTargetEmbedding : kInputEmbedding, "missing, but the other one is there");
    return input;
  }

  // Appends the numbers; the first row decides the width.
  void embedding(const char* key, std::int64_t& width, std::vector<float>& into) const {
    const Json& numbers = object_.at(key);
    if (!numbers.is_array() || numbers.empty()) corrupt(key, "not a list of numbers");
    if (width == 0) width = static_cast<std::int64_t>(numbers.size());
    if (static_cast<std::int64_t>(numbers.size()) != width) {
      throw Error(ErrorKind::kDimensionMismatch, field(key), std::to_string(numbers.size()) + " numbers",
                  "the first row has " + std::to_string(width));
    }
    for (const Json& number : numbers) {
      if (!number.is_number()) corrupt(key, "not a list of numbers");
      const double value = number.get<double>();
      // From half a step above the largest fp32 on, rounding gives infinity.
      if (!(std::abs(value) < 0x1.ffffffp127)) {
        throw Error(ErrorKind::kNonFinite, field(key), number.dump(), "it must fit fp32");
      }
      const auto narrow = static_cast<float>(value);
      into.push_back(narrow);
    }
  }

  std::string field(const std::string& what) const { return "JSONL line " + std::to_string(number_) + " " + what; }
  [[noreturn]] void corrupt(const std::string& what, const std::string& value) const {
    throw Error(ErrorKind::kCorrupt, field(what), value, "each line is one JSON object as the format describes");
  }

 private:
  std::int64_t number_;
  Json object_;
};

void append_numbers(std::string& text, const float* values, std::int64_t width) {
  text += '[';
  char digits[32];
  for (std::int64_t i = 0; i < width; ++i) {
    if (i > 0) text += ',';
    if (values[i] == 0 && std::signbit(values[i])) {
      text += "-0.0";  // "-0" would be read as the whole number 0
      continue;
    }
    text.append(digits, std::to_chars(digits, digits + sizeof(digits), values[i]).ptr);
  }
  text += ']';
}

}  // namespace

Dataset parse_jsonl(ByteSpan file, std::int64_t hashed_width) {
  if (hashed_width < 1 || hashed_width > (1 << 20)) {
    throw Error(ErrorKind::kOutOfRange, "width", std::to_string(hashed_width), "embeddings have 1 to 1048576 elements");
  }
  Dataset dataset;
  dataset.format = "jsonl";
  bool embedded = false;
  std::string_view rest = without_byte_order_mark(as_text(file));
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const std::size_t length = std::min(rest.find('\n'), rest.size());
    const std::string_view text = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Line line(number, text);
    if (dataset.rows == 0) embedded = line.has_embeddings();
    if (line.has_embeddings() != embedded) line.corrupt("embeddings", "some rows have them and some do not");
    dataset.texts.add(line.text(kInput));
    dataset.texts.add(line.text(kTarget));
    if (embedded) {
      line.embedding(kInputEmbedding, dataset.width, dataset.inputs);
      line.embedding(kTargetEmbedding, dataset.width, dataset.targets);
    }
    ++dataset.rows;
  }
  if (embedded) return dataset;
  dataset.width = hashed_width;
  if (dataset.rows > kLargestHashed / dataset.width) {
    throw Error(ErrorKind::kOutOfRange, "rows", std::to_string(dataset.rows),
                "too many to hash in memory: split the file");
  }
  dataset.inputs.resize(static_cast<std::size_t>(dataset.rows * dataset.width));
  dataset.targets.resize(dataset.inputs.size());
  for (std::int64_t row = 0; row < dataset.rows; ++row) {
    hashed_embedding(dataset.input_text(row), dataset.width, dataset.inputs.data() + row * dataset.width);
    hashed_embedding(dataset.target_text(row), dataset.width, dataset.targets.data() + row * dataset.width);
  }
  if (dataset.rows > 0) dataset.remarks.push_back("no embeddings in the file: hashed from the texts");
  return dataset;
}

void write_jsonl(const std::string& path, const Dataset& dataset) {
  check_sizes(dataset);
  check_finite(dataset);
  AtomicFile file(path);
  std::string text;
  for (std::int64_t row = 0; row < dataset.rows; ++row) {
    try {
      text =
          "{\"input\":" + Json(dataset.input_text(row)).dump() + ",\"target\":" + Json(dataset.target_text(row)).dump();
    } catch (const Json::exception&) {
      throw Error(ErrorKind::kCorrupt, "text of row " + std::to_string(row), "not UTF-8",
                  "JSON cannot hold it: write .efds");
    }
    text += ",\"input_embedding\":";
    append_numbers(text, dataset.input(row), dataset.width);
    text += ",\"target_embedding\":";
    append_numbers(text, dataset.target(row), dataset.width);
    text += "}\n";
    file.write(as_bytes(text));
  }
  file.commit();
}

}  // namespace twinbench

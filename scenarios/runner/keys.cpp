// Strict reading: an unknown key is an error, since it is a wish that nobody would fulfil.
#include "scenarios/runner/keys.h"

#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "src/common/error.h"
#include "src/common/nearest_name.h"
#include "src/common/number_text.h"
#include "src/common/one_line.h"
#include "src/formats/text_file.h"

namespace twinbench {
namespace {

using nlohmann::json;

constexpr std::uintmax_t kLargestFile = 1 << 20;  // such a file is a page; more is an accident or an attack
constexpr std::size_t kLongestName = 64;

}  // namespace

std::string given(const YAML::Node& node) {
  if (node.IsScalar()) return node.Scalar();
  return node.IsNull() ? "null" : node.IsMap() ? "a map" : "a list";
}

namespace {

template <class T>
T scalar(const YAML::Node& node, const std::string& field, const char* wanted) {
  try {
    if (node.IsScalar()) return node.as<T>();
  } catch (const YAML::Exception&) {
  }
  throw Error(ErrorKind::kBadArgument, field, given(node), std::string("it has the wrong type; give ") + wanted);
}

void expect_range(double value, const Key& key, const std::string& field) {
  if (!std::isfinite(value)) throw Error(ErrorKind::kNonFinite, field, std::to_string(value), "give a finite number");
  if (value < key.low || value > key.high)
    throw Error(ErrorKind::kOutOfRange, field, number_text(value),
                "give " + number_text(key.low) + " to " + number_text(key.high) + " (" + key.meaning + ")");
}

json value_of(const YAML::Node& node, const Key& key, const std::string& field) {
  switch (key.type) {
    case Key::Type::kCount: {
      const auto value = scalar<std::int64_t>(node, field, "a whole number");
      if (const std::string& text = node.Scalar(); text.size() > 1 && text[text[0] == '-' ? 1 : 0] == '0' && value != 0)
        throw Error(ErrorKind::kBadArgument, field, text, "YAML takes a leading 0 for another base; leave it out");
      expect_range(static_cast<double>(value), key, field);
      return value;
    }
    case Key::Type::kReal: {
      const auto value = scalar<double>(node, field, "a number");
      expect_range(value, key, field);
      return value;
    }
    case Key::Type::kText: {
      const auto value = one_line(scalar<std::string>(node, field, "a text"));  // it is printed
      if (value.empty()) throw Error(ErrorKind::kOutOfRange, field, "''", "give " + key.meaning);
      if (!key.choices.empty() && std::find(key.choices.begin(), key.choices.end(), value) == key.choices.end()) {
        std::string all;
        for (const auto& choice : key.choices) all += (all.empty() ? "" : ", ") + choice;
        throw Error(ErrorKind::kUnknownName, field, value, "give one of " + all + did_you_mean(value, key.choices));
      }
      return value;
    }
    case Key::Type::kCounts:
    case Key::Type::kTexts: {
      if (!node.IsSequence()) throw Error(ErrorKind::kBadArgument, field, given(node), "give a list [a, b]");
      if (static_cast<std::int64_t>(node.size()) < key.fewest)
        throw Error(ErrorKind::kOutOfRange, field, std::to_string(node.size()) + " entries",
                    "give at least " + std::to_string(key.fewest) + " (" + key.meaning + ")");
      Key one = key;
      one.type = key.type == Key::Type::kCounts ? Key::Type::kCount : Key::Type::kText;
      json list = json::array();
      for (std::size_t i = 0; i < node.size(); ++i)
        list.push_back(value_of(node[i], one, field + "[" + std::to_string(i) + "]"));
      return list;
    }
  }
  throw Error(ErrorKind::kInternal, field, "key type", "every type of key is read here");
}

Key key_of(Key::Type type, std::string name, double low, double high, std::string meaning) {
  Key key;
  key.name = std::move(name);
  key.type = type;
  key.low = low;
  key.high = high;
  key.meaning = std::move(meaning);
  return key;
}

}  // namespace

Key Key::or_else(json value) const {
  Key key = *this;
  key.otherwise = std::move(value);
  return key;
}

Key Key::naming_outputs() const {
  Key key = *this;
  key.of_outputs = true;
  return key;
}

Key count_key(std::string name, double low, double high, std::string meaning) {
  return key_of(Key::Type::kCount, std::move(name), low, high, std::move(meaning));
}

Key real_key(std::string name, double low, double high, std::string meaning) {
  return key_of(Key::Type::kReal, std::move(name), low, high, std::move(meaning));
}

Key text_key(std::string name, std::string meaning) {
  return key_of(Key::Type::kText, std::move(name), 0, 0, std::move(meaning));
}

Key choice_key(std::string name, std::vector<std::string> choices, std::string meaning) {
  Key key = text_key(std::move(name), std::move(meaning));
  key.choices = std::move(choices);
  return key;
}

Key counts_key(std::string name, double low, double high, std::int64_t fewest, std::string meaning) {
  Key key = key_of(Key::Type::kCounts, std::move(name), low, high, std::move(meaning));
  key.fewest = fewest;
  return key;
}

Key texts_key(std::string name, std::int64_t fewest, std::string meaning) {
  Key key = key_of(Key::Type::kTexts, std::move(name), 0, 0, std::move(meaning));
  key.fewest = fewest;
  return key;
}

namespace {

struct NoEvents final : YAML::EventHandler {
  using Text = std::string;
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const Text&, YAML::anchor_t, const Text&) override {}
  void OnSequenceStart(const YAML::Mark&, const Text&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const Text&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// Not YAML::LoadAll, which finds documents without end in a file that begins with a comma, until memory is gone.
bool has_two_documents(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  NoEvents nothing;
  return parser.HandleNextDocument(nothing) && parser.HandleNextDocument(nothing);
}

}  // namespace

YAML::Node read_yaml(const std::string& path, const std::string& what) {
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(path, failed);
  if (failed) throw Error(ErrorKind::kInputOutput, what, path, "it cannot be read: " + failed.message());
  if (bytes > kLargestFile) throw Error(ErrorKind::kOutOfRange, what, path, "it is larger than 1 MiB");
  try {
    const std::string text = read_text_file(path, what);
    if (has_two_documents(text))
      throw Error(ErrorKind::kBadArgument, what, path,
                  "it holds 2 documents or more; write each into a file of its own");
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw Error(ErrorKind::kBadArgument, what, path, std::string("not YAML: ") + error.what());
  }
}

void check_plain_name(const std::string& name, const std::string& where) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (name.empty() || name.size() > kLongestName || name.front() < 'a' || name.front() > 'z' ||
      !std::all_of(name.begin(), name.end(), plain))
    throw Error(ErrorKind::kOutOfRange, where, one_line(name, kLongestName),
                "give small letters, digits and underscores, at most " + std::to_string(kLongestName));
}

void check_keys(const YAML::Node& map, const std::string& where, const std::vector<std::string>& known) {
  if (!map || !map.IsMap()) throw Error(ErrorKind::kBadArgument, where, "not a map", "write 'key: value' lines");
  std::vector<std::string> seen;
  for (const auto& entry : map) {
    const auto key = scalar<std::string>(entry.first, where + ": key", "a word");
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      std::string all;
      for (const auto& name : known) all += (all.empty() ? "" : ", ") + name;
      throw Error(ErrorKind::kUnknownName, where + ": key", key, "the keys here are " + all + did_you_mean(key, known));
    }
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      throw Error(ErrorKind::kBadArgument, where + ": key", key, "it is given twice; keep one");
    seen.push_back(key);
  }
}

json read_keys(const YAML::Node& node, const std::string& where, const std::vector<Key>& keys) {
  std::vector<std::string> known;
  for (const auto& key : keys) known.push_back(key.name);
  // An absent block is an empty one: its keys may all have defaults.
  if (node && !node.IsNull()) check_keys(node, where, known);
  json values = json::object();
  for (const auto& key : keys) {
    const bool there = node && node.IsMap() && node[key.name];
    if (!there && key.otherwise.is_null())
      throw Error(ErrorKind::kBadArgument, where + ": key", key.name, "it is missing; give " + key.meaning);
    values[key.name] = there ? value_of(node[key.name], key, where + ": " + key.name) : key.otherwise;
  }
  return values;
}

}  // namespace twinbench

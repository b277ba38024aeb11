// Keys of a scenario file, declared as data: name, type, range, default and meaning stand once.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace twinbench {

struct Key {
  enum class Type { kCount, kReal, kText, kCounts, kTexts };  // the last two: lists
  std::string name;
  Type type = Type::kCount;
  std::string meaning;
  double low = 0, high = 0;          // of numbers, or of how many texts
  std::vector<std::string> choices;  // of a text; empty: any
  nlohmann::json otherwise;          // the default; null: the key must be given
  std::int64_t fewest = 0;           // of list entries
  bool of_outputs = false;           // texts that name outputs of the run

  Key or_else(nlohmann::json value) const;  // the same with a default
  Key naming_outputs() const;
};

Key count_key(std::string name, double low, double high, std::string meaning);
Key real_key(std::string name, double low, double high, std::string meaning);
Key text_key(std::string name, std::string meaning);
Key choice_key(std::string name, std::vector<std::string> choices, std::string meaning);
Key counts_key(std::string name, double low, double high, std::int64_t fewest, std::string meaning);
Key texts_key(std::string name, std::int64_t fewest, std::string meaning);

// What the file has there, in an error: a text, "null", "a map" or "a list".
std::string given(const YAML::Node& node);

// What `node` holds under each key, defaults filled in, as {"windows": 20, ...}. `where` begins every error: the file,
// and the block in it. Throws Error: kBadArgument (no map, a key missing or given twice, a wrong type), kUnknownName (a
// key or choice nobody declares, with the nearest), kOutOfRange, kNonFinite.
nlohmann::json read_keys(const YAML::Node& node, const std::string& where, const std::vector<Key>& keys);

// The one document of a file. Throws Error: kInputOutput, kOutOfRange (over 1 MiB), kBadArgument (not YAML, several
// documents). `what` begins the error: "scenario".
YAML::Node read_yaml(const std::string& path, const std::string& what);

// Small letters, digits and underscores, at most 64 of them. Throws kOutOfRange.
void check_plain_name(const std::string& name, const std::string& where);

// Only that: every key of the map is one of `known`, once.
void check_keys(const YAML::Node& map, const std::string& where, const std::vector<std::string>& known);

}  // namespace twinbench

// JSON from outside: a whole file, or a text, as a value that no reader's recursion can be exhausted by.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "src/common/error.h"
#include "src/formats/text_file.h"

namespace twinbench {

struct JsonRules {
  int deepest = 64;                    // records, pins and specifications need 10; copying and printing a value recurse
  std::uint64_t largest = UINT64_MAX;  // whole number; one beyond 2^63 - 1 becomes negative in a count of 64 bits
};

// Of files that hold counts.
constexpr JsonRules kCounts{.largest = INT64_MAX};

// What is wrong with the text: not JSON, a number that no double holds or beyond the largest, deeper nesting, a key
// given twice, of which nlohmann keeps the last. Empty: none.
std::string json_fault(std::string_view text, const JsonRules& rules = {});

// Throws kBadFile, naming `what` and `name` (a flag or field, and its file), for what json_fault() refuses.
template <class Json = nlohmann::json>
Json parse_json_text(std::string_view text, const std::string& what, const std::string& name,
                     const JsonRules& rules = {}) {
  const std::string fault = json_fault(text, rules);
  if (!fault.empty()) throw Error(ErrorKind::kBadFile, what, name, fault);
  return Json::parse(text.begin(), text.end());
}

// The same of a file; throws kInputOutput too, as read_text_file does.
template <class Json = nlohmann::json>
Json read_json_file(const std::string& path, const std::string& what, const JsonRules& rules = {}) {
  return parse_json_text<Json>(read_text_file(path, what), what, path, rules);
}

// The same value to be printed: its strings escaped so that neither a terminal nor the log of a CI service obeys them.
template <class Json>
std::string printed_json(const Json& value, int indent) {
  std::string text = value.dump(indent, ' ', true, Json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find("##[", at)) != std::string::npos;) text.replace(at, 2, "#\\u0023");
  return text;
}

}  // namespace twinbench

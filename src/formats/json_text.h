// JSON from outside: a whole file, or a text, as a value that no reader's recursion can be exhausted by.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "src/common/error.h"
#include "src/formats/text_file.h"

namespace twinbench {

struct JsonRules {
  int deepest = 64;          // records, pins and specifications need 10; copying and printing a value recurse
  bool unique_keys = false;  // nlohmann keeps the last of two equal ones
};

// What is wrong with the text: not JSON, a number that no double holds, deeper nesting, a key given twice. Empty: none.
std::string json_fault(std::string_view text, const JsonRules& rules = {});

// Throws kBadFile, naming `what` and `name` (a flag or field, and its file), for what json_fault() refuses.
template <class Json = nlohmann::json>
Json parse_json_text(std::string_view text, const std::string& what, const std::string& name) {
  const std::string fault = json_fault(text);
  if (!fault.empty()) throw Error(ErrorKind::kBadFile, what, name, fault);
  return Json::parse(text.begin(), text.end());
}

// The same of a file; throws kInputOutput too, as read_text_file does.
template <class Json = nlohmann::json>
Json read_json_file(const std::string& path, const std::string& what) {
  return parse_json_text<Json>(read_text_file(path, what), what, path);
}

// The same value to be printed: its strings escaped so that neither a terminal nor the log of a CI service obeys them.
template <class Json>
std::string printed_json(const Json& value, int indent) {
  std::string text = value.dump(indent, ' ', true, Json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find("##[", at)) != std::string::npos;) text.replace(at, 2, "#\\u0023");
  return text;
}

}  // namespace twinbench

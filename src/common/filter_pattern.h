// A --filter of the command line as a regular expression.
#pragma once

#include <regex>
#include <string>

#include "src/common/error.h"

namespace twinbench {

// ECMAScript, to be searched for. Throws kBadArgument for a text that is no regular expression.
inline std::regex filter_pattern(const std::string& regular_expression) {
  try {
    return std::regex(regular_expression);
  } catch (const std::regex_error& error) {
    throw Error(ErrorKind::kBadArgument, "--filter", regular_expression,
                std::string("not a regular expression: ") + error.what());
  }
}

}  // namespace twinbench

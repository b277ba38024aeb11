// A --filter of the command line as a regular expression.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace twinbench {

// RE2's syntax: the usual one without references back and looking ahead, so that a search takes time in proportion to
// the name, whatever the expression, and no expression exhausts the stack.
class FilterPattern {
 public:
  // Throws kBadArgument for a text that is no regular expression, or needs more than 8 MiB as one.
  explicit FilterPattern(const std::string& regular_expression);

  bool found_in(std::string_view name) const;

 private:
  std::shared_ptr<const re2::RE2> expression_;
};

}  // namespace twinbench

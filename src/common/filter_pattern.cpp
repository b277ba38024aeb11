// Filters by RE2.
#include "src/common/filter_pattern.h"

#include <re2/re2.h>

#include "src/common/error.h"
#include "src/common/one_line.h"

namespace twinbench {

FilterPattern::FilterPattern(const std::string& regular_expression)
    : expression_(std::make_shared<const re2::RE2>(regular_expression, re2::RE2::Quiet)) {
  if (!expression_->ok())
    throw Error(ErrorKind::kBadArgument, "--filter", regular_expression,
                "not a regular expression: " + one_line(expression_->error(), 256));
}

bool FilterPattern::found_in(std::string_view name) const {
  return re2::RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), *expression_);
}

}  // namespace twinbench

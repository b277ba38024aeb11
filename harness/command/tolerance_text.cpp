// Tolerances and numbers as coverage writes them.
#include "harness/command/tolerance_text.h"

#include <sstream>

namespace twinbench {

std::string fact_number(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

std::string text_of(const Tolerance& tolerance) {
  static const char* const kinds[] = {"exact", "bound", "gradient", "measured"};
  std::string text = kinds[static_cast<int>(tolerance.kind)];
  if (tolerance.iterative) text += " of a solver";
  for (const auto dtype : {Dtype::kFp32, Dtype::kBf16, Dtype::kFp16, Dtype::kTf32})
    text += ' ' + fact_number(tolerance.bound(dtype).relative) + '+' + fact_number(tolerance.bound(dtype).absolute);
  return text;
}

}  // namespace twinbench

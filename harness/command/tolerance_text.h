// A tolerance as a fact of coverage: whoever widens it changes the text.
#pragma once

#include <string>

#include "src/component.h"

namespace twinbench {

// "bound of a solver 0+5e-05 0+5e-05 ...": relative and absolute, in fp32, bf16, fp16 and tf32.
std::string text_of(const Tolerance& tolerance);

// In six digits, as facts write numbers.
std::string fact_number(double value);

}  // namespace twinbench

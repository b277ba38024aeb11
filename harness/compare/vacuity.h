// The vacuity guard: a comparison that cannot tell wrong answers from the right one proves nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "src/component.h"

namespace twinbench {

struct Vacuity {
  int checked = 0;     // wrong answers that differ from the right one by more than rounding
  int rejected = 0;    // of those
  bool zeros = false;  // zeros were among them: where they are the right answer, a twin that does nothing would pass
  std::string reason;  // the first wrong answer accepted, or the right one rejected; empty where the guard holds
  bool holds() const { return reason.empty(); }
};

// Makes up to five wrong answers from the baseline's: zeros, its mean everywhere, an input of that shape, one element
// off by 5 % of the rms (25 % in modes that round, for an element that may hang on a rounding: then six), rows rolled
// by one; of complex outputs also the conjugate, and real and imaginary parts swapped. An answer that equals the right
// one (a constant output, a permutation-invariant one, an identity) is not a wrong one and is left out. Negligible and
// measured outputs check nothing.
Vacuity check_vacuity(const OutputSpec& spec, const at::Tensor& oracle, const at::Tensor& baseline,
                      const NamedTensors& inputs, Dtype dtype, const at::Tensor& unsettled = {});

}  // namespace twinbench

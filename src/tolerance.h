// How close an output must come: the tolerance classes of the specifications.
#pragma once

#include <string>

#include "src/setting.h"

namespace twinbench {

// |a - b| <= absolute + relative * max(|a|, |b|), as the specifications give it for optimized against baseline.
struct Bound {
  double relative = 0, absolute = 0;
};

// The tolerance class of an output. `exact` compares bitwise. Otherwise the spec's bound for that dtype holds in
// addition to the comparer's oracle-relative rules. `gradient` compares relative L2 error and cosine (bound.relative is
// the L2 limit). `measured` values (times, bytes held) differ from run to run: they must be finite and not below zero.
// Complex values are compared as such: |a - b| and |a| are moduli.
struct Tolerance {
  enum class Kind { kExact, kBound, kGradient, kMeasured } kind = Kind::kBound;
  Bound fp32{2e-5, 2e-6};
  Bound bf16{2e-5, 2e-6};
  std::string spec_class;  // "op", "elementwise", "step", "grad", "exact", or the component's own
  Bound fp16{2e-5, 2e-6};
  Bound tf32{2e-5, 2e-6};
  // Solved until a residual is small enough: how far a solution, a row of the last axis, may then lie from the right
  // one is the class's to say (its absolute bound, of the row's norm), and a baseline that happens to come closer is no
  // measure of another one's work.
  bool iterative = false;

  const Bound& bound(Dtype dtype) const {
    return dtype == Dtype::kBf16 ? bf16 : dtype == Dtype::kFp16 ? fp16 : dtype == Dtype::kTf32 ? tf32 : fp32;
  }
};

}  // namespace twinbench

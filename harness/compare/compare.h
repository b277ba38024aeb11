// The one comparison rule: a candidate's output against the fp64 oracle, relative to the baseline's own error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "src/component.h"

namespace twinbench {

enum class Judgement {
  kAccepted,
  kRejected,  // the candidate is wrong
  kInvalid,   // the case is: oracle and baseline disagree, or the oracle holds a NaN nobody allowed
};

struct Comparison {
  Judgement judgement = Judgement::kRejected;
  std::string reason;  // empty where accepted
  std::int64_t elements = 0;
  double max_absolute_error = 0, max_relative_error = 0;  // against the oracle, finite elements
  double rmse = 0, rmse_baseline = 0;                     // against the oracle
  double worst_ratio = 0;   // largest error / allowed over all rules; <= 1 passes; 1e30 stands for infinity
  bool negligible = false;  // the right answer is numerically zero here, so that no wrong answer can be told from it

  bool accepted() const { return judgement == Judgement::kAccepted; }
};

// In this order; the first failing rule gives the reason:
//   structure     shape, dtype, device, strided and contiguous as the baseline's, no autograd history
//   non-finite    NaN, +Inf and -Inf exactly where the oracle, cast to the output's dtype, has them;
//                 NaN only where the output's specification allows it
// element-wise  |y - r| <= rtol |r| + max(min(atol, rms(r) / 100), 8 RMSE(b, r), |b - r|); invalid if RMSE(b, r) >
//                 rms(r) / 20, unless both are below the specification's absolute bound: then |y - r| <= that bound
//                 ("negligible")
//   whole tensor  RMSE(y, r) <= m RMSE(b, r) + 4 eps rms(r), max error <= 8 x the baseline's + 4 eps max|r|;
//                 m = 2 (3 in bf16 mode), 5 below 1000 elements, 10 and at least the specification's bound below 16
//   (gradient outputs have no element-wise rule: their class bounds the tensor; poor is then twice the bound or 5 %)
//   specification bound: |y - x| <= absolute + relative max(|y|, |x|), or half a unit in the oracle's last place where
//                 that is more, x being the baseline's value or the oracle's, so that the exact answer always is near
//                 enough; gradient: relative L2 distance and cosine, likewise
// `unsettled`, a bool tensor of the oracle's shape, marks what hangs on a rounding that honest arithmetic may take
// either way (harness/parity/rounding_decisions.h). All other elements come from the same rounded operands everywhere:
// they are held to what fp32 mode allows (specification 0.4, `op`: the modes differ in summation order only). Marked
// ones are held to the specification's bound of the mode, which is there for such flips, and to no other rule.
// Undefined: nobody has looked; the mode's own table holds for every element.
// `honest`, one fp64 number an element, is how far honest arithmetic errs there (harness/parity/trials.h). The
// baseline's own error is one sample of that and may be a lucky one, so that beside it the rules take this: an element
// may err by eight times its own, and RMSE(b, r) and the baseline's largest error are at least those of `honest`. The
// specification's bound stays as it is. Undefined: the baseline's error alone.
// Complex and planar outputs: the same with moduli and with masks of both parts; the cosine is of the planes.
// Measured outputs: finite and not below zero, of the baseline's dtype and device; their lengths may differ from run to
// run. Exact outputs, and all integer and bool ones, must equal the baseline bit for bit instead.
// oracle: fp64, complex128 or integer on any device; baseline and candidate: in the cell's dtype on the cell's device.
Comparison compare(const OutputSpec& spec, const at::Tensor& oracle, const at::Tensor& baseline,
                   const at::Tensor& candidate, Dtype dtype, const at::Tensor& unsettled = {},
                   const at::Tensor& honest = {});
// Above this ratio of error to what is allowed no bad luck of the baseline's explains a rejection.
constexpr double kNearMiss = 100;
// And above this one work is not done, where a state has gone on from run to run: its error grows with the runs, and
// discrete answers may follow.
constexpr double kGross = 8;

// Empty, or where the output's class asks more of these inputs than fp32 arithmetic can give: kOutOfReach times
// `honest`, which is a root mean square, is more than the specification's bound. No rule is any wider for it.
constexpr double kOutOfReach = 4;
std::string beyond_class(const OutputSpec& spec, const at::Tensor& oracle, Dtype dtype, const at::Tensor& unsettled,
                         const at::Tensor& honest);

}  // namespace twinbench

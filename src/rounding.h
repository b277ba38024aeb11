// The one definition of how a mode rounds operands (specification 0.3: to nearest, ties to even), and its observer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "src/setting.h"

namespace twinbench {

// Whether the mode rounds in software: bf16 and fp16 do; TF32's products round inside the hardware, as it likes.
inline bool rounds_operands(Dtype mode) { return mode == Dtype::kBf16 || mode == Dtype::kFp16; }

// The values that the mode's products see, in the tensor's own dtype: the nearest bf16 or half numbers; as they are in
// modes that round nothing. Whatever a baseline rounds, it rounds here.
at::Tensor rounded(const at::Tensor& values, Dtype mode);
// The same, seen by nobody.
at::Tensor rounded_unobserved(const at::Tensor& values, Dtype mode);
double rounded_unobserved(double value, Dtype mode);  // of a tensor in fp64

// What a baseline decides by a value that roundings have touched: whether a flow ends, how many children it has, which
// cell it is in. `other` is the outcome beyond the nearest threshold, `margin` the way there, in the unit of the
// specification's bound (energy flow 0.5). Whatever a baseline in a mode that rounds decides, it decides here.
std::int64_t decided(std::int64_t computed, std::int64_t other, double margin);
// The same for every element of a bool tensor; the other outcome is its opposite. `margins`, of its shape, is called
// only where an observer asks.
at::Tensor decided_each(const at::Tensor& computed, const std::function<at::Tensor()>& margins);

// Answers for rounded() on this thread while it lives, in modes that round, and for decided(): the harness sees what a
// baseline rounds and decides, in which order, and asks what would follow had either gone another way. Observers do not
// nest.
class RoundingObserver {
 public:
  RoundingObserver();
  virtual ~RoundingObserver();
  RoundingObserver(const RoundingObserver&) = delete;
  RoundingObserver& operator=(const RoundingObserver&) = delete;
  virtual at::Tensor observe(const at::Tensor& values, Dtype mode) = 0;
  virtual std::int64_t decide(std::int64_t computed, std::int64_t other, double margin);
};

}  // namespace twinbench

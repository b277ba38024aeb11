// Rounding by conversion, and the observer of the thread.
#include "src/rounding.h"

#include "src/common/error.h"

namespace twinbench {
namespace {

thread_local RoundingObserver* observer = nullptr;

}  // namespace

at::Tensor rounded(const at::Tensor& values, Dtype mode) {
  return observer && rounds_operands(mode) ? observer->observe(values, mode) : rounded_unobserved(values, mode);
}

at::Tensor rounded_unobserved(const at::Tensor& values, Dtype mode) {
  if (!rounds_operands(mode)) return values;
  return values.to(mode == Dtype::kBf16 ? at::kBFloat16 : at::kHalf).to(values.scalar_type());
}

std::int64_t decided(std::int64_t computed, std::int64_t other, double margin) {
  return observer ? observer->decide(computed, other, margin) : computed;
}

std::int64_t RoundingObserver::decide(std::int64_t computed, std::int64_t, double) { return computed; }

RoundingObserver::RoundingObserver() {
  if (observer) throw Error(ErrorKind::kInternal, "RoundingObserver", "a second one", "end the first one before");
  observer = this;
}

RoundingObserver::~RoundingObserver() { observer = nullptr; }

}  // namespace twinbench

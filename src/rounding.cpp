// Rounding by conversion, and the observer of the thread.
#include "src/rounding.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

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

double rounded_unobserved(double value, Dtype mode) {
  if (!rounds_operands(mode)) return value;
  const auto single = static_cast<float>(value);
  return mode == Dtype::kBf16 ? static_cast<float>(c10::BFloat16(single)) : static_cast<float>(c10::Half(single));
}

std::int64_t decided(std::int64_t computed, std::int64_t other, double margin) {
  return observer ? observer->decide(computed, other, margin) : computed;
}

at::Tensor decided_each(const at::Tensor& computed, const std::function<at::Tensor()>& margins) {
  if (!observer) return computed;
  const at::Tensor result = computed.cpu().contiguous().clone(), margin = margins().cpu().to(at::kDouble).contiguous();
  auto* const outcome = result.mutable_data_ptr<bool>();
  for (std::int64_t i = 0; i < result.numel(); ++i)
    outcome[i] = observer->decide(outcome[i], !outcome[i], margin.const_data_ptr<double>()[i]) != 0;
  return result.to(computed.device());
}

std::int64_t RoundingObserver::decide(std::int64_t computed, std::int64_t, double) { return computed; }

RoundingObserver::RoundingObserver() {
  if (observer) throw Error(ErrorKind::kInternal, "RoundingObserver", "a second one", "end the first one before");
  observer = this;
}

RoundingObserver::~RoundingObserver() { observer = nullptr; }

}  // namespace twinbench

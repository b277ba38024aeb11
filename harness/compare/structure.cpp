// Structure comparison and the words for shapes and elements.
#include "harness/compare/structure.h"

#include <vector>

namespace twinbench {

namespace {

template <typename List>
std::string list_text(const List& list) {
  std::string text = "[";
  for (const auto value : list) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + "]";
}

}  // namespace

std::string shape_text(const at::Tensor& tensor) { return list_text(tensor.sizes()); }

std::string element_text(const at::Tensor& tensor, std::int64_t element) {
  std::vector<std::int64_t> index(tensor.dim());
  std::int64_t rest = element;
  for (std::int64_t axis = tensor.dim() - 1; axis >= 0; --axis) {
    index[axis] = rest % tensor.size(axis);
    rest /= tensor.size(axis);
  }
  return "element " + std::to_string(element) + " (index " + list_text(index) + ")";
}

std::string structure_difference(const at::Tensor& baseline, const at::Tensor& candidate) {
  if (!candidate.defined()) return "no tensor";
  if (candidate.layout() != at::kStrided) return "the tensor is not strided";
  if (candidate.sizes() != baseline.sizes())
    return "shape " + shape_text(candidate) + ", the baseline's is " + shape_text(baseline);
  if (candidate.scalar_type() != baseline.scalar_type())
    return std::string("dtype ") + c10::toString(candidate.scalar_type()) + ", the baseline's is " +
           c10::toString(baseline.scalar_type());
  if (candidate.device() != baseline.device())
    return "device " + candidate.device().str() + ", the baseline's is " + baseline.device().str();
  if (baseline.is_contiguous() && !candidate.is_contiguous()) return "not contiguous, the baseline's is";
  if (candidate.requires_grad() && !baseline.requires_grad())
    return "carries autograd history, the baseline's does not";
  return "";
}

}  // namespace twinbench

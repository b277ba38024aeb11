// Structure comparison and the words for shapes and elements.
#include "harness/compare/structure.h"

#include <vector>

#include "src/inputs.h"

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

std::string structure_difference(const at::Tensor& baseline, const at::Tensor& candidate, bool any_shape) {
  if (!candidate.defined()) return "no tensor";
  if (candidate.layout() != at::kStrided) return "the tensor is not strided";
  if (!any_shape && candidate.sizes() != baseline.sizes())
    return "shape " + shape_text(candidate) + ", the baseline's is " + shape_text(baseline);
  if (candidate.scalar_type() != baseline.scalar_type())
    return std::string("dtype ") + c10::toString(candidate.scalar_type()) + ", the baseline's is " +
           c10::toString(baseline.scalar_type());
  if (candidate.device() != baseline.device())
    return "device " + candidate.device().str() + ", the baseline's is " + baseline.device().str();
  if (baseline.is_contiguous() && !candidate.is_contiguous()) return "not contiguous, the baseline's is";
  if (candidate.is_conj() != baseline.is_conj() || candidate.is_neg() != baseline.is_neg())
    return "its conjugation or negation is not carried out, the baseline's is: resolve_conj(), resolve_neg()";
  if (candidate.requires_grad() && !baseline.requires_grad())
    return "carries autograd history, the baseline's does not";
  return "";
}

bool has_extents(const at::Tensor& tensor, const std::vector<std::int64_t>& expected) {
  bool fits = tensor.dim() == static_cast<std::int64_t>(expected.size());
  for (std::size_t axis = 0; fits && axis < expected.size(); ++axis)
    fits = expected[axis] < 0 || expected[axis] == tensor.size(static_cast<std::int64_t>(axis));
  return fits;
}

std::string extents_text(const std::vector<std::int64_t>& expected) {
  std::string text;
  for (const std::int64_t extent : expected)
    text += (text.empty() ? "" : ", ") + (extent < 0 ? "any" : std::to_string(extent));
  return "[" + text + "]";
}

std::string declared_difference(const OutputSpec& spec, const at::Tensor& output, const Setting& setting) {
  const auto expected = extents(spec.shape, setting);
  if (!has_extents(output, expected)) {
    std::string written;
    for (const Expression& extent : spec.shape) written += (written.empty() ? "" : ", ") + extent.text();
    return "shape " + shape_text(output) + ", declared is " + extents_text(expected) + " = [" + written + "]";
  }
  const at::ScalarType dtype = scalar_type(spec.element, setting.dtype);
  if (output.scalar_type() != dtype)
    return std::string("dtype ") + c10::toString(output.scalar_type()) + ", declared is " + to_string(spec.element) +
           ", in " + to_string(setting.dtype) + " mode " + c10::toString(dtype);
  return "";
}

}  // namespace twinbench

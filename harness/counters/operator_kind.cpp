// Classification of operators: name lists for what no schema tells, the schema for the rest.
#include "harness/counters/operator_kind.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace twinbench {

namespace {

constexpr std::array<std::string_view, 8> kCopies = {"aten::copy_",       "aten::copy",
                                                     "aten::clone",       "aten::_to_copy",
                                                     "aten::_copy_from",  "aten::_copy_from_and_resize",
                                                     "aten::_pin_memory", "aten::lift_fresh_copy"};

// Each waits for a device to learn a shape or a truth value. Composites of these (argwhere, is_nonzero) issue them.
constexpr std::array<std::string_view, 13> kSynchronising = {"aten::_local_scalar_dense",
                                                             "aten::nonzero",
                                                             "aten::masked_select",
                                                             "aten::equal",
                                                             "aten::is_nonzero",
                                                             "aten::_unique",
                                                             "aten::_unique2",
                                                             "aten::unique_dim",
                                                             "aten::unique_consecutive",
                                                             "aten::unique_dim_consecutive",
                                                             "aten::repeat_interleave",
                                                             "aten::bincount",
                                                             "aten::_coalesce"};

// Uninitialised memory or bookkeeping: they write no element, and their schemas show no aliasing that says so.
constexpr std::array<std::string_view, 18> kMetadata = {
    "aten::empty",          "aten::empty_like",     "aten::empty_strided",
    "aten::empty_permuted", "aten::new_empty",      "aten::new_empty_strided",
    "aten::_unsafe_view",   "aten::_reshape_alias", "aten::set_",
    "aten::resize_",        "aten::resize_as_",     "aten::detach_",
    "aten::requires_grad_", "aten::retain_grad",    "aten::set_data",
    "aten::rename_",        "aten::record_stream",  "aten::_assert_tensor_metadata"};

template <std::size_t count>
bool listed(const std::array<std::string_view, count>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A result that shares its argument's memory, and no argument written: a view.
bool is_view(const c10::FunctionSchema& schema) {
  bool aliases = false;
  for (const auto& argument : schema.arguments())
    if (const auto* alias = argument.alias_info()) {
      if (alias->isWrite()) return false;
      aliases = true;
    }
  return aliases;
}

// size, stride, result_type, ...: no tensor comes out and none is written.
bool is_query(const c10::FunctionSchema& schema) {
  if (schema.operator_name().getNamespace() != std::optional<std::string_view>("aten")) return false;
  for (const auto& argument : schema.arguments())
    if (argument.alias_info() && argument.alias_info()->isWrite()) return false;
  for (const auto& result : schema.returns())
    if (result.type()->str().find("Tensor") != std::string::npos) return false;
  return true;
}

}  // namespace

OperatorClass classify(const c10::OperatorHandle& handle) {
  const auto& schema = handle.schema();
  const std::string_view name = schema.name();
  const bool synchronises = listed(kSynchronising, name);
  if (name == "aten::_local_scalar_dense") return {OperatorKind::kRead, true};
  if (handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
    return {OperatorKind::kTransparent, false};
  if (listed(kCopies, name)) return {OperatorKind::kCopy, false};
  if (listed(kMetadata, name) || handle.hasTag(at::Tag::inplace_view) || is_view(schema) ||
      (is_query(schema) && !synchronises))
    return {OperatorKind::kTransparent, false};
  return {OperatorKind::kDispatch, synchronises};
}

}  // namespace twinbench

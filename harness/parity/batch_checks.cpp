// Checks that batch items do not see one another.
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <limits>

#include "harness/compare/inputs.h"
#include "harness/compare/structure.h"
#include "harness/parity/subject.h"
#include "src/common/error.h"
#include "src/inputs.h"

namespace twinbench {

std::optional<std::int64_t> batch_axis_of(const Subject& subject, const std::string& input) {
  for (const auto& declared : inputs_of(subject.spec().signature, subject.setting))
    if (declared.name == input) return declared.batch_axis;
  return std::nullopt;
}

bool is_read_by_run(const Subject& subject, const std::string& input) {
  return inputs_read_by_run(subject.spec(), subject.setting).count(input) > 0;
}

std::int64_t batch_items(const ComponentSpec& spec, const Setting& setting) {
  bool any_output = false;
  for (const auto& output : output_specs(spec, setting)) any_output = any_output || output.batch_axis.has_value();
  return spec.batch_size.empty() || !any_output ? 0 : setting.size(spec.batch_size);
}

namespace {

// The part of a tensor that belongs to one item; several rows an item are allowed.
at::Tensor part_of(const at::Tensor& tensor, std::int64_t axis, std::int64_t item, std::int64_t items,
                   const std::string& name) {
  const std::int64_t length = tensor.size(axis);
  if (length % items != 0)
    throw Error(ErrorKind::kDimensionMismatch, "batch axis of '" + name + "'", std::to_string(length),
                "must be a multiple of the " + std::to_string(items) + " items of the case");
  const std::int64_t rows = length / items;
  return tensor.narrow(axis, item * rows, rows);
}

}  // namespace

std::string bound_broken(const OutputSpec& spec, const at::Tensor& expected, const at::Tensor& got, Dtype dtype) {
  if (expected.sizes() != got.sizes()) return "shape " + shape_text(got) + " instead of " + shape_text(expected);
  if (spec.tolerance.kind == Tolerance::Kind::kMeasured) return "";
  if (spec.tolerance.kind == Tolerance::Kind::kExact || !(expected.is_floating_point() || expected.is_complex())) {
    const std::string different = first_bit_difference({{spec.name, expected}}, {{spec.name, got}});
    return different.empty() ? "" : "other bits in " + different;
  }
  const Bound& bound = spec.tolerance.bound(dtype);
  const HostElements x(expected, spec.element), y(got, spec.element);
  if (spec.tolerance.kind == Tolerance::Kind::kGradient) {  // a bound on the whole tensor
    double distance = 0, norm = 0;
    for (std::int64_t i = 0; i < x.size(); ++i) {
      if (kind_of(x.at(i)) != kind_of(y.at(i)))
        return element_text(got, i) + " is not finite on one side alone, or otherwise";
      if (!is_finite(x.at(i))) continue;
      distance += std::norm(x.at(i) - y.at(i));
      norm += std::norm(x.at(i));
    }
    const double allowed = bound.relative * std::sqrt(norm) + bound.absolute;
    if (std::sqrt(distance) <= allowed) return "";
    return c10::str("its L2 distance is ", std::sqrt(distance), ", allowed ", allowed);
  }
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const Complex one = x.at(i), other = y.at(i);
    const bool close =
        std::abs(one - other) <= bound.absolute + bound.relative * std::max(std::abs(one), std::abs(other));
    if (kind_of(one) == kind_of(other) && (close || !is_finite(one))) continue;
    const auto text = [&](Complex value) {
      return x.is_complex() ? c10::str(value.real(), " + ", value.imag(), "i") : std::to_string(value.real());
    };
    return element_text(x.is_complex() && !got.is_complex() ? got.select(0, 0) : got, i) + " is " + text(other) +
           " instead of " + text(one);
  }
  return "";
}

namespace {

// A gradient's class bounds the whole tensor: an item whose own gradient cancels to nearly nothing may be off by what
// rounding leaves of the others'.
bool is_lost(const OutputSpec& spec, const at::Tensor& in_batch, const at::Tensor& alone, const at::Tensor& whole) {
  if (spec.tolerance.kind != Tolerance::Kind::kGradient || !in_batch.sizes().equals(alone.sizes())) return false;
  if (!in_batch.isfinite().equal(alone.isfinite())) return false;
  const auto finite = [](const at::Tensor& tensor) { return at::where(tensor.isfinite(), tensor, 0).cpu(); };
  const auto norm = [](const at::Tensor& tensor) { return at::linalg_vector_norm(tensor).item<double>(); };
  constexpr double kRounding = 4 * 0x1p-23;
  return norm(finite(in_batch) - finite(alone)) <= kRounding * norm(finite(whole));
}

}  // namespace

void check_batch_invariance(const Subject& subject, CheckResult& result) {
  const std::int64_t items = batch_items(subject.spec(), subject.setting);
  std::set<std::int64_t> chosen = {0, items / 2, items - 1};
  for (const std::int64_t item : chosen) {
    Setting alone = subject.setting;
    alone.input_case.sizes[subject.spec().batch_size] = 1;
    NamedTensors inputs;
    for (const auto& [name, tensor] : subject.placed()) {
      const auto axis = batch_axis_of(subject, name);
      inputs.set(name, axis ? part_of(tensor, *axis, item, items, name).contiguous() : tensor);
    }
    const auto runnable = subject.component.make(subject.variant, inputs, alone);
    run_afresh(*runnable);
    const NamedTensors outputs = runnable->outputs();
    for (const auto& spec : subject.outputs_declared()) {
      if (!spec.batch_axis) continue;
      const at::Tensor in_batch = part_of(subject.outputs[spec.name], *spec.batch_axis, item, items, spec.name);
      const std::string broken = bound_broken(spec, in_batch, outputs[spec.name], subject.setting.dtype);
      if (!broken.empty() && !is_lost(spec, in_batch, outputs[spec.name], subject.outputs[spec.name]))
        return result.fail_comparison("item " + std::to_string(item) + " of " + std::to_string(items) + ", output '" +
                                      spec.name + "' alone, against the batch: " + broken);
    }
  }
}

void check_poisoned_neighbour(const Subject& subject, CheckResult& result) {
  const std::int64_t items = batch_items(subject.spec(), subject.setting);
  const std::int64_t poisoned = items / 2;
  NamedTensors inputs = subject.placed();
  bool any = false;
  for (auto& [name, tensor] : inputs) {
    const auto axis = batch_axis_of(subject, name);
    if (!axis || !(tensor.is_floating_point() || tensor.is_complex()) || tensor.numel() == 0) continue;
    part_of(tensor, *axis, poisoned, items, name).fill_(std::numeric_limits<double>::quiet_NaN());
    any = true;
  }
  if (!any) return result.skip("no floating input belongs to single items");
  try {
    const Prepared prepared = subject.prepare(inputs);
    run_afresh(*prepared.runnable);
    const NamedTensors outputs = prepared.runnable->outputs();
    for (const auto& spec : subject.outputs_declared()) {
      if (!spec.batch_axis || spec.tolerance.kind == Tolerance::Kind::kMeasured) continue;
      for (const std::int64_t item : {poisoned - 1, poisoned + 1, std::int64_t{0}, items - 1}) {
        if (item < 0 || item >= items || item == poisoned) continue;
        const at::Tensor clean = part_of(subject.outputs[spec.name], *spec.batch_axis, item, items, spec.name);
        const at::Tensor beside = part_of(outputs[spec.name], *spec.batch_axis, item, items, spec.name);
        if (const std::string different = first_bit_difference({{spec.name, clean}}, {{spec.name, beside}});
            !different.empty())
          return result.fail("NaN in item " + std::to_string(poisoned) + " changes item " + std::to_string(item) +
                             " of output '" + spec.name + "'");
      }
    }
  } catch (const Error& error) {
    result.skip(std::string("refuses NaN: ") + error.what());
  }
}

}  // namespace twinbench

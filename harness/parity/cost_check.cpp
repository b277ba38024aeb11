// Counting by a callback on every operator that the baseline calls.
#include "harness/parity/cost_check.h"

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "harness/parity/reference.h"
#include "src/inputs.h"
#include "src/rounding.h"

namespace twinbench {

namespace {

// Upper limits are exact, for a variant that moves each input and output once, or computes what the baseline does, must
// not be called impossible; the slack is that of summing in another order.
constexpr double kSlack = 1 + 1e-9;
// Lower limits are loose, for what any version must do may honestly be less than what the baseline does: that may
// recompute its forward pass for a gradient or form products that the answer does not need. A roof that is four times
// too near is what a wrong unit, a width twice over or a forgotten pass looks like.
constexpr double kHidden = 0.25;

struct Tally {
  double products = 0, others = 0;
  int depth = 0;  // of counted products: what one calls inside is part of it
};
thread_local Tally* tally = nullptr;

// Multiply-adds of a matrix product, from the last two of its tensors; 0 for other operators.
double multiply_adds(const at::RecordFunction& function) {
  static constexpr std::string_view kProducts[] = {"aten::mm",      "aten::addmm", "aten::bmm",
                                                   "aten::baddbmm", "aten::mv",    "aten::addmv",
                                                   "aten::dot",     "aten::vdot",  "aten::addbmm"};
  const std::string_view name = function.name();
  if (std::find(std::begin(kProducts), std::end(kProducts), name) == std::end(kProducts)) return 0;
  std::vector<at::Tensor> tensors;
  const auto schema = function.operator_schema();  // tells a product's factors from what it is written to
  const auto values = function.inputs();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto* const alias = schema && i < schema->arguments().size() ? schema->arguments()[i].alias_info() : nullptr;
    if (values[i].isTensor() && !(alias && alias->isWrite())) tensors.push_back(values[i].toTensor());
  }
  if (tensors.size() < 2) return 0;
  const at::Tensor &left = tensors[tensors.size() - 2], &right = tensors.back();
  const double columns = right.dim() < 2 ? 1 : static_cast<double>(right.size(-1));
  return static_cast<double>(left.numel()) * columns * (left.is_complex() ? 4 : 1);
}

double most_elements(c10::ArrayRef<const c10::IValue> values) {
  double most = 0;
  for (const auto& value : values) {
    if (value.isTensor() && value.toTensor().defined())
      most = std::max(most, static_cast<double>(value.toTensor().numel()));
    if (!value.isTensorList()) continue;
    double sum = 0;
    for (const at::Tensor& tensor : value.toTensorList()) sum += static_cast<double>(tensor.numel());
    most = std::max(most, sum);
  }
  return most;
}

struct Product : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  if (!tally || tally->depth > 0) return nullptr;
  const double count = multiply_adds(function);
  if (count == 0) {
    tally->others += most_elements(function.inputs());
    return nullptr;
  }
  tally->products += 2 * count;
  ++tally->depth;
  return std::make_unique<Product>();
}

void on_end(const at::RecordFunction&, at::ObserverContext* context) {
  if (tally && context) --tally->depth;
}

class Counting {
 public:
  Counting()
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(on_start, on_end).needsInputs(true).scopes({at::RecordScope::FUNCTION}))) {
    tally = &counted;
  }
  ~Counting() {
    at::removeCallback(handle_);
    tally = nullptr;
  }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
  Tally counted;

 private:
  at::CallbackHandle handle_;
};

}  // namespace

CountedCost counted_cost(const Component& component, const Setting& setting, const NamedTensors& generated) {
  CountedCost cost;
  for (const auto& input : inputs_of(component.spec.signature, setting)) {
    const bool narrow = input.role == Role::kWeight && rounds_operands(setting.dtype);
    cost.bytes += static_cast<double>(generated[input.name].nbytes()) * (narrow ? 0.5 : 1.0);
  }
  NamedTensors outputs;
  {
    Counting counting;
    outputs = baseline_outputs(component, setting, generated);
    cost.product_flops = counting.counted.products;
    cost.other_flops = counting.counted.others;
  }
  const auto& repeats = component.spec.baseline_repeats;
  cost.needed_flops = cost.product_flops / (repeats ? std::max(1.0, repeats(setting)) : 1.0);
  for (const auto& [name, tensor] : outputs) cost.output_bytes += static_cast<double>(tensor.nbytes());
  cost.bytes += cost.output_bytes;
  return cost;
}

std::string cost_difference(const ComponentSpec& spec, const Cost& declared, const CountedCost& counted) {
  const double most_flops = counted.product_flops + counted.other_flops;
  const double least_bytes = kHidden * (spec.batch_size.empty() ? counted.output_bytes : counted.bytes);
  if (!(std::isfinite(declared.bytes) && std::isfinite(declared.flops) && declared.bytes >= 0 && declared.flops >= 0))
    return c10::str("the cost is no number: ", declared.bytes, " bytes, ", declared.flops, " FLOPs");
  if (declared.bytes > kSlack * counted.bytes)
    return c10::str("the cost declares ", declared.bytes,
                    " bytes, more than all inputs and outputs in this mode have, ", counted.bytes,
                    ": a variant that moves no more would be impossible");
  if (declared.flops > kSlack * most_flops)
    return c10::str("the cost declares ", declared.flops, " FLOPs, more than the baseline's ", counted.product_flops,
                    " of matrix products and ", counted.other_flops, " of other operators");
  if (declared.bytes < least_bytes)
    return c10::str("the cost declares ", declared.bytes, " bytes, less than ", kHidden, " of what was counted, ",
                    least_bytes / kHidden, ": it hides the roof");
  if (declared.flops < kHidden * counted.needed_flops)
    return c10::str("the cost declares ", declared.flops, " FLOPs, less than ", kHidden, " of the matrix products', ",
                    counted.needed_flops, ": it hides the roof");
  return "";
}

void check_cost(const Component& component, const Setting& setting, const NamedTensors& generated,
                CheckResult& result) {
  if (!component.spec.cost) return result.skip("the component declares no cost");
  Setting complete = bound(component.spec.signature, generated, setting);
  complete.device = c10::Device(c10::DeviceType::CPU);
  const CountedCost counted = counted_cost(component, complete, generated);
  const std::string different = cost_difference(component.spec, component.spec.cost(complete), counted);
  if (!different.empty()) return result.fail(different);
  constexpr double kMostHandled = 2;  // each byte read once and written once
  const double handled = component.spec.host_bytes ? component.spec.host_bytes(complete) : 0;
  if (handled > kSlack * kMostHandled * counted.bytes)
    result.fail(c10::str("loops beside operators are said to handle ", handled, " bytes, more than ", kMostHandled,
                         " times those of all inputs and outputs, ", counted.bytes, ": any loop would be short"));
}

}  // namespace twinbench

// One line for each part of a signature, one digest for each case.
#include "harness/command/signature_facts.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstdio>

#include "harness/command/tolerance_text.h"
#include "harness/memory/tensor_hash.h"
#include "harness/runner/share.h"

namespace twinbench {

namespace {

std::string text_of(const std::vector<Expression>& shape) {
  std::string text;
  for (const auto& extent : shape) text += (text.empty() ? "" : ", ") + extent.text();
  return " [" + text + "]";
}

std::string text_of(const Draw& draw) {
  return c10::str(" draw ", static_cast<int>(draw.kind), " ", draw.number, " ", fact_number(draw.spread), " ",
                  fact_number(draw.low), " ", fact_number(draw.high), draw.fan.empty() ? "" : " by ", draw.fan,
                  draw.distribution.empty() ? "" : " always ", draw.distribution);
}

std::string batch_text(const std::optional<std::int64_t>& axis) {
  return axis ? " batch " + std::to_string(*axis) : " no batch";
}

// Which elements are 0, NaN or an infinity of which sign, and the size of the others.
std::uint64_t kinds_of(const at::Tensor& numbers) {
  const at::Tensor finite = at::where(numbers.isfinite(), numbers, 0);
  const at::Tensor kinds = numbers.eq(0).to(at::kByte) + 2 * numbers.isnan().to(at::kByte) +
                           4 * numbers.eq(INFINITY).to(at::kByte) + 8 * numbers.eq(-INFINITY).to(at::kByte);
  const double rms = numbers.numel() == 0 ? 0 : std::sqrt(finite.to(at::kDouble).square().mean().item<double>());
  return hash_of(kinds) * 31 + static_cast<std::uint64_t>(rms > 0 ? std::llround(4 * std::log2(rms)) : -100'000);
}

std::uint64_t digest_of(const NamedTensors& inputs) {
  std::uint64_t sum = 0;
  for (const auto& [name, tensor] : inputs) {
    sum = sum * 31 + name_hash(name + c10::str(tensor.sizes(), tensor.scalar_type()));
    const at::Tensor plain = tensor.contiguous();
    sum = sum * 31 + (plain.is_complex()          ? kinds_of(at::view_as_real(plain))
                      : plain.is_floating_point() ? kinds_of(plain)
                                                  : hash_of(plain));
  }
  return sum;
}

}  // namespace

std::set<std::string> signature_facts(const ComponentSpec& spec) {
  std::set<std::string> facts;
  for (const auto& input : spec.signature.inputs) {
    std::string line = spec.id() + " input " + input.name + " " + to_string(input.role) + " " +
                       to_string(input.element) + text_of(input.shape) + text_of(input.draw) +
                       batch_text(input.batch_axis) + (input.differentiable ? "" : " no gradient");
    if (input.shift != 0) line += " shifted " + fact_number(input.shift);
    if (input.limits)
      line += " within " + fact_number(input.limits->first) + " to " + fact_number(input.limits->second);
    if (!input.per.empty()) line += " per " + input.per + " by " + std::to_string(input.number_step);
    facts.insert(line);
  }
  for (const auto& output : spec.signature.outputs) {
    std::string line = spec.id() + " output " + output.name + " is " + to_string(output.element) +
                       text_of(output.shape) + batch_text(output.batch_axis) + (output.nan_allowed ? " NaN" : "") +
                       (output.advancing ? " advancing" : "");
    if (output.gradient) line += " gradient" + text_of(*output.gradient);
    if (!output.per.empty()) line += " per " + output.per;
    facts.insert(line);
  }
  return facts;
}

std::string digits_of(const NamedTensors& inputs) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(digest_of(inputs)));
  return digits;
}

}  // namespace twinbench

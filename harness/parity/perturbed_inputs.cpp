// The next seed's inputs, moved where they are the same.
#include "harness/parity/perturbed_inputs.h"

#include <ATen/ATen.h>

#include "harness/compare/inputs.h"
#include "harness/memory/tensor_hash.h"
#include "src/draws.h"
#include "src/inputs.h"

namespace twinbench {

namespace {

constexpr std::uint32_t kNoise = 0x7e51;  // its place in the random stream: no signature's
constexpr double kShare = 0.25, kAbsolute = 0.1;

at::Tensor moved(const at::Tensor& tensor, std::uint64_t seed, std::uint32_t number) {
  if (tensor.is_complex()) return at::view_as_complex(moved(at::view_as_real(tensor).clone(), seed, number));
  const at::Tensor noise = draws::normal(tensor.sizes(), seed, number, 1).to(tensor.scalar_type());
  return tensor + noise * (tensor.abs() * kShare + kAbsolute);
}

}  // namespace

NamedTensors perturbed_inputs(const ComponentSpec& spec, const Setting& setting, const NamedTensors& own,
                              std::uint64_t seed) {
  const NamedTensors other = generated_inputs(spec, setting, seed + 1);
  NamedTensors perturbed;
  std::uint32_t number = kNoise;
  for (const auto& input : inputs_of(spec.signature, completed(spec.signature, setting))) {
    if (!own.contains(input.name)) continue;
    const at::Tensor& tensor = own[input.name];
    const bool same_form = other.contains(input.name) && other[input.name].sizes() == tensor.sizes();
    at::Tensor now = same_form ? other[input.name] : tensor;
    ++number;
    if ((tensor.is_floating_point() || tensor.is_complex()) && tensor.numel() > 0 && hash_of(now) == hash_of(tensor)) {
      now = moved(tensor, seed, number);
      if (input.limits && !now.is_complex()) now.clamp_(input.limits->first, input.limits->second);
    }
    perturbed.set(input.name, now);
  }
  return perturbed;
}

NamedTensors turned_inputs(const ComponentSpec& spec, const Setting& setting, const NamedTensors& own,
                           const NamedTensors& other) {
  const std::int64_t items = spec.batch_size.empty() ? 0 : setting.size(spec.batch_size);
  const auto read = inputs_read_by_run(spec, setting);
  NamedTensors turned = own;
  bool any = false;
  for (const auto& input : inputs_of(spec.signature, completed(spec.signature, setting))) {
    if (items < 2 || !input.batch_axis || !own.contains(input.name)) continue;
    const at::Tensor& tensor = own[input.name];
    const std::int64_t length = tensor.size(*input.batch_axis);
    if (length == 0 || length % items != 0) continue;
    turned.set(input.name, tensor.roll(length / items, *input.batch_axis));
    const bool alike = other.contains(input.name) && hash_of(other[input.name]) == hash_of(tensor);
    any = any || (alike && read.count(input.name) && hash_of(turned[input.name]) != hash_of(tensor));
  }
  return any ? turned : NamedTensors();
}

}  // namespace twinbench

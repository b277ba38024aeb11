// The tables are the packs themselves, made from places in the place of parameters.
#include "optimized/energy_flow/common/pack_sources.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <limits>
#include <string>

#include "kernels/energy_flow/common/pack_element.h"
#include "src/common/error.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

// Of a recurrent layer two biases are added: the packs are made of one kind, then of the other.
bool is_second(const std::string& name) { return name.rfind("bias_hidden_", 0) == 0; }

// Places of the trained parameters, counted from 1; of the others zeros.
NamedTensors places_of(const NamedTensors& inputs, const at::Tensor& arena, bool second) {
  NamedTensors places;
  for (const auto& [name, tensor] : inputs) {
    if (!tensor.is_floating_point()) continue;
    const bool trained = tensor.storage().is_alias_of(arena.storage()) && is_second(name) == second;
    const auto from = static_cast<double>(tensor.storage_offset() - arena.storage_offset() + 1);
    places.set(name,
               trained ? at::arange(from, from + static_cast<double>(tensor.numel()), at::kDouble).view(tensor.sizes())
                       : at::zeros(tensor.sizes(), at::kDouble));
  }
  return places;
}

// Which elements are rounded to bf16: of parameters that are no bf16 numbers.
std::vector<at::Tensor> rounded_elements(const PacksOf& packs_of, const NamedTensors& inputs, const Setting& setting) {
  constexpr double kProbe = 1 + 1.0 / 512;
  NamedTensors probes;
  for (const auto& [name, tensor] : inputs)
    if (tensor.is_floating_point()) probes.set(name, at::full(tensor.sizes(), kProbe, at::kFloat));
  std::vector<at::Tensor> rounded = packs_of(probes, setting);
  for (at::Tensor& of : rounded) of = of.eq(1.0);
  return rounded;
}

}  // namespace

std::vector<PackSource> pack_sources(const std::vector<at::Tensor>& packs, const PacksOf& packs_of,
                                     const NamedTensors& inputs, const Setting& setting, const at::Tensor& arena) {
  if (arena.numel() >= std::numeric_limits<std::int32_t>::max())
    throw Error(ErrorKind::kOutOfRange, "parameters", std::to_string(arena.numel()), "give fewer than 2^31 parameters");
  Setting exact = setting;
  exact.dtype = Dtype::kFp32;
  const std::vector<at::Tensor> first = packs_of(places_of(inputs, arena, false), exact),
                                second = packs_of(places_of(inputs, arena, true), exact),
                                rounded = rounded_elements(packs_of, inputs, setting);
  std::vector<PackSource> sources;
  for (std::size_t i = 0; i < packs.size(); ++i) {
    if (packs[i].storage().is_alias_of(arena.storage())) continue;
    const bool sums = second[i].any().item<bool>();
    if (!sums && !first[i].any().item<bool>()) continue;
    const auto table = [&](const at::Tensor& places) {
      return at::where(rounded[i], places.neg(), places).to(at::kInt).contiguous().to(packs[i].device());
    };
    sources.push_back({packs[i], table(first[i]), sums ? table(second[i]) : at::Tensor()});
  }
  return sources;
}

void refresh(const std::vector<PackSource>& sources, const at::Tensor& arena) {
  const float* const from = arena.const_data_ptr<float>();
  for (const PackSource& source : sources) {
    float* const to = source.pack.mutable_data_ptr<float>();
    const std::int32_t* const first = source.first.const_data_ptr<std::int32_t>();
    const std::int32_t* const second = source.second.defined() ? source.second.const_data_ptr<std::int32_t>() : nullptr;
    at::parallel_for(0, source.pack.numel(), 1 << 15, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = pack_element(from, first[i], second ? second[i] : 0, to[i]);
    });
  }
}

}  // namespace twinbench::energy_flow::flow_forward

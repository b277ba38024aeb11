// Packs of parameters that are made again in place, where an optimizer has changed the parameters: which elements of
// its arena each element of a pack is, found once, at set-up. Nothing is allocated after it.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "src/named_tensors.h"
#include "src/setting.h"

namespace twinbench::energy_flow::flow_forward {

// An element is the sum of the two of the arena that the tables name, by place and one: 0 names none. Less than 0: of
// the place and one negated, rounded to bf16 as an operand. Where neither names one the element stays as it is: zeros
// of a padding, parameters that are not trained.
struct PackSource {
  at::Tensor pack;           // as it was made
  at::Tensor first, second;  // int32, as long, on its device; second: undefined where no element is a sum
};

// What makes the packs from parameters by name; in fp64 too, which holds a place exactly.
using PacksOf = std::function<std::vector<at::Tensor>(const NamedTensors& inputs, const Setting& setting)>;

// packs: those in use, made by packs_of(inputs, setting). Parameters that are views of `arena` are trained. Left out:
// packs that are the arena's own memory, and those of which nothing is trained. Throws kOutOfRange where the arena has
// more elements than a table can name.
std::vector<PackSource> pack_sources(const std::vector<at::Tensor>& packs, const PacksOf& packs_of,
                                     const NamedTensors& inputs, const Setting& setting, const at::Tensor& arena);

// On the CPU: all of them, from the arena as it is.
void refresh(const std::vector<PackSource>& sources, const at::Tensor& arena);

}  // namespace twinbench::energy_flow::flow_forward

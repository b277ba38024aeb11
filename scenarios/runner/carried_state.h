// What state() and set_state() of most runs do: a run's tensors as copies, and others' put in their place.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/copy.h>

#include <string>

#include "src/common/error.h"
#include "src/named_tensors.h"

namespace twinbench {

inline NamedTensors copies_of(const NamedTensors& own) {
  NamedTensors copies;
  for (const auto& [name, tensor] : own) copies.set(name, tensor.clone());
  return copies;
}

// Copies each of `given` into the one of that name. Throws kUnknownName, kBadShape, and kBadDtype where a whole number
// stands for a floating one or the other way round.
inline void put_in_place(const NamedTensors& own, const NamedTensors& given) {
  for (const auto& [name, tensor] : given) {
    if (own[name].sizes() != tensor.sizes())
      throw Error(ErrorKind::kBadShape, "state " + name, c10::str(tensor.sizes()),
                  "this run has " + c10::str(own[name].sizes()));
    if (own[name].is_floating_point() != tensor.is_floating_point())
      throw Error(ErrorKind::kBadDtype, "state " + name, c10::toString(tensor.scalar_type()),
                  std::string("this run has ") + c10::toString(own[name].scalar_type()));
    own[name].copy_(tensor);
  }
}

}  // namespace twinbench

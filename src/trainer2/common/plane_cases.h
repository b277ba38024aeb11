// What the specifications of components with a rotor share: sizes of its plane table, the table of a case, bad tables.
#pragma once

#include <vector>

#include "src/component.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2 {

inline std::vector<DerivedSize> plane_sizes() {
  return {{"per_layer", Expression("max(axes / 2, 1)")}, {"slots", Expression("ceil(planes, per_layer) * per_layer")}};
}

// Of a case with the switch shared_axes: one layer of all slots, whose planes then share axes.
inline at::Tensor planes_of(const Setting& setting) {
  const std::int64_t slots = setting.size("slots");
  return built_in_planes(slots, setting.on("shared_axes") ? slots : setting.size("per_layer"), setting.size("axes"));
}

inline std::vector<Refusal> plane_refusals() {
  return {{"an axis that is not there",
           [](NamedTensors& inputs, Setting& setting) {
             inputs["plane_axes"].mutable_data_ptr<std::int64_t>()[1] = setting.size("axes");
           },
           ErrorKind::kOutOfRange, "plane_axes"},
          {"a plane of one axis",
           [](NamedTensors& inputs, Setting&) {
             auto* const pair = inputs["plane_axes"].mutable_data_ptr<std::int64_t>();
             pair[1] = pair[0];
           },
           ErrorKind::kOutOfRange, "plane_axes"}};
}

}  // namespace twinbench::trainer2

// What every variant of energy_flow.energy_carrier has to know about its inputs: names, shapes, and the one check of them.
#pragma once

#include <cstdint>
#include <string>

#include "src/component.h"

namespace twinbench::energy_flow::energy_carrier {

// features [flows, features], energy [flows], hidden [layers, flows, hidden]; per layer l:
// weight_input_l [3*hidden, in_l], weight_hidden_l [3*hidden, hidden], bias_input_l and bias_hidden_l [3*hidden],
// in_0 = features + 1, in_l = hidden above; gate blocks in the order reset, update, candidate.
struct CarrierShape {
  std::int64_t flows = 0, features = 0, hidden = 0, layers = 0;

  std::int64_t input_width(std::int64_t layer) const { return layer == 0 ? features + 1 : hidden; }
};

// Guards pass [-limit, limit] and replace NaN by zero.
inline constexpr double kCarrierGuardLimit = 10.0;

std::string layer_name(const char* stem, std::int64_t layer);  // "weight_input", 1 -> "weight_input_1"

// Throws kBadShape or kBadDtype, naming the input. `dtype` is what every floating input must have.
CarrierShape checked_carrier_shape(const NamedTensors& inputs, const Setting& setting);

}  // namespace twinbench::energy_flow::energy_carrier

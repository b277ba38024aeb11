// What the variants of energy_flow.energy_carrier read of a setting.
#pragma once

#include <cstdint>
#include <string>

#include "src/component.h"

namespace twinbench::energy_flow::energy_carrier {

struct CarrierShape {
  std::int64_t flows = 0, features = 0, hidden = 0, layers = 0;

  std::int64_t input_width(std::int64_t layer) const { return layer == 0 ? features + 1 : hidden; }
};

inline constexpr double kCarrierGuardLimit = 10.0;

inline std::string layer_name(const char* stem, std::int64_t layer) { return std::string(stem) + "_" + std::to_string(layer); }

inline CarrierShape checked_carrier_shape(const NamedTensors&, const Setting& s) {
  return {s.size("flows"), s.size("features"), s.size("hidden"), s.size("layers")};
}

}  // namespace twinbench::energy_flow::energy_carrier

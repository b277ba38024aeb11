// The text encoder's parameters (C18), as the specifications of whoever encodes texts list them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/spec_parts.h"

namespace twinbench::energy_flow {

// Gains and shifts start at 1 and 0 in training; here they are spread, so that dropping one shows.
inline std::vector<InputSpec> encoder_tables() {
  return {bias("embedding", "vocabulary, model", from_case(1, 0.5)),
          bias("position", "positions, model", normal(2, 0.5))};
}

inline void add_encoder_layers(Signature& s) {
  std::vector<InputSpec> layer, last;
  const auto add_norm = [](std::vector<InputSpec>& list, const std::string& number, std::uint32_t draw) {
    list.push_back(gain("gain_" + number, "model", normal(draw, 0.1)).shifted(1));
    list.push_back(bias("shift_" + number, "model", normal(draw + 1, 0.1)));
  };
  const auto add_linear = [](std::vector<InputSpec>& list, const std::string& name, const std::string& rows,
                             const std::string& columns, std::uint32_t draw) {
    list.push_back(weight(name + "_weight", rows + ", " + columns, xavier(draw)));
    list.push_back(bias(name + "_bias", rows, uniform(draw + 1, -0.1, 0.1)));
  };
  add_linear(layer, "qkv", "3 * model", "model", 32);
  add_linear(layer, "out", "model", "model", 34);
  add_norm(layer, "1", 36);
  add_linear(layer, "ff_in", "ff", "model", 38);
  add_linear(layer, "ff_out", "model", "ff", 40);
  add_norm(layer, "2", 42);
  for (const InputSpec& one : layer) s.inputs.push_back(one.one_per("layers", 16));
  add_linear(last, "projection", "model", "model", 4);
  add_norm(last, "last", 6);
  add_linear(last, "surface", "cells", "model", 8);
  for (const InputSpec& one : last) s.inputs.push_back(one);
}

}  // namespace twinbench::energy_flow
